-- What comes first when Redis has said that it has no memory left (OOM). Redis refuses a script's first command
-- that needs memory, and lets a script finish that has written something: a subject that is there gets the time to
-- live that it has, and is then decided as always, which takes few bytes more than it has. A call with a subject that
-- is not there is left to be refused.
if redis.call('EXISTS', unpack(KEYS)) == #KEYS then
  local life = redis.call('PTTL', KEYS[1])
  if life > 0 then redis.call('PEXPIRE', KEYS[1], life) end
end

