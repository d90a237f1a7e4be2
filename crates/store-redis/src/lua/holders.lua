-- Lists the holders of a concurrency limit, and writes nothing. concurrency.lua describes the set.
-- KEYS[1]  the set
-- ARGV[1]  the most holders to list
-- Returns the time, the places taken, the number of holders, and of each listed one the id of its
-- lease, its places and the end of its lease.

local key, FIRST_TIME = KEYS[1], '1000000000000'
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local taken = tonumber(redis.call('ZSCORE', key, '#') or 0)
if taken == 0 then return { now, 0, 0 } end
now = math.max(now, -tonumber(redis.call('ZSCORE', key, '@')))

local function places_of(id)
  return tonumber(redis.call('ZSCORE', key, '*' .. id) or 1)
end

-- Leases that have ended stay in the set until the next call that decides.
local now_text = string.format('%.0f', now)
for _, id in ipairs(redis.call('ZRANGEBYSCORE', key, FIRST_TIME, now_text)) do
  taken = taken - places_of(id)
end

local after = '(' .. now_text
local reply = { now, taken, redis.call('ZCOUNT', key, after, '+inf') }
local found = redis.call('ZRANGEBYSCORE', key, after, '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[1])
for i = 1, #found, 2 do
  reply[#reply + 1] = found[i]
  reply[#reply + 1] = places_of(found[i])
  reply[#reply + 1] = tonumber(found[i + 1])
end
return reply
