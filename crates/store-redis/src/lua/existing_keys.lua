-- Prologue of the script for a server that is out of memory (OOM). Redis rejects the first command
-- of a script that needs memory, but lets a script that has already written finish. So if all keys
-- exist, this sets the TTL of one to its current value, which needs no memory, and the script then
-- decides as usual. A call with a missing key is rejected by Redis.
if redis.call('EXISTS', unpack(KEYS)) == #KEYS then
  local life = redis.call('PTTL', KEYS[1])
  if life > 0 then redis.call('PEXPIRE', KEYS[1], life) end
end

