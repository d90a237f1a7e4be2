-- concurrency: a sorted set with a member for each holder
--   score   end of its lease, in microseconds
--   member  id of the lease
-- More members sort before these, at scores that are not times:
--   '#'     its score is the number of places taken
--   '@'     its score is the time of the last change, negated
--   '*id'   its score is the number of places of this lease, if there are several
-- args: limit, longest lease (us); text: id and length of the lease under which acquire takes places

local concurrency = {}
meters[7] = concurrency

local function places_of(s, id)
  return tonumber(redis.call('ZSCORE', s.key, '*' .. id) or 1)
end

-- Frees the places of leases that have ended, in any call: each of them once.
local function prune(s)
  local now = string.format('%.0f', s.now)
  local ended = redis.call('ZRANGEBYSCORE', s.key, FIRST_TIME, now)
  if not ended[1] then return end
  for _, id in ipairs(ended) do
    local places = places_of(s, id)
    if places > 1 then redis.call('ZREM', s.key, '*' .. id) end
    s.taken = s.taken - places
  end
  redis.call('ZREMRANGEBYSCORE', s.key, FIRST_TIME, now)
  if s.taken == 0 then
    redis.call('DEL', s.key)
  else
    redis.call('ZADD', s.key, s.taken, '#')
  end
end

function concurrency.load(key, args, clock)
  local s = { key = key, now = clock, leases = {}, grants = {}, granted = 0, done = {}, taken = 0, limit = args.limit, window = args.window }
  s.place, s.place_lease = string.match(args.text, '^(%x+):(%d+)$')
  local taken = redis.call('ZSCORE', key, '#')
  if not taken then return s end
  s.taken = tonumber(taken)
  s.now = math.max(clock, -tonumber(redis.call('ZSCORE', key, '@')))
  prune(s)
  return s
end

-- The lease that the verb is about.
local function own_id(s, verb, id)
  if verb == 'acquire' or verb == 'lease' or verb == 'undo' then return s.place end
  return id
end

function concurrency.permits(s, cost, verb, id)
  s.id = own_id(s, verb, id)
  s.ends = s.id and s.id ~= '' and redis.call('ZSCORE', s.key, s.id) or nil
  s.existed = s.ends ~= nil
  local fits = s.taken + cost <= s.limit
  if verb == 'peek' then return fits end
  if verb == 'acquire' or verb == 'lease' or verb == 'reserve' then return s.ends ~= nil or fits end
  if verb == 'use' or verb == 'cancel' then return s.ends ~= nil end
  if verb == 'commit' then return s.ends ~= nil or s.spent ~= nil end
  return verb ~= 'give_back'
end

function concurrency.perform(s, cost, verb, lease)
  local places
  if verb == 'acquire' or verb == 'lease' then
    places, lease = cost, s.place_lease
  elseif verb == 'reserve' then
    places = cost
  elseif verb ~= 'use' then
    if s.ends and (verb == 'commit' or verb == 'cancel' or verb == 'undo') then
      s.taken = s.taken - places_of(s, s.id)
      redis.call('ZREM', s.key, s.id, '*' .. s.id)
      s.ends = nil
    end
    return
  end
  -- A lease that has places is renewed, and takes no more.
  if not s.ends then
    s.taken = s.taken + places
    if places > 1 then redis.call('ZADD', s.key, places, '*' .. s.id) end
  end
  s.ends = s.now + math.min(tonumber(lease), s.window)
  redis.call('ZADD', s.key, s.ends, s.id)
end

-- Units are neither reserved nor granted: the pending ones of other algorithms are never set.
function concurrency.save(s)
  if s.taken == 0 then
    redis.call('DEL', s.key)
    return
  end
  redis.call('ZADD', s.key, s.taken, '#', -s.now, '@')
  expire(s, tonumber(redis.call('ZREVRANGE', s.key, 0, 0, 'WITHSCORES')[2]) - s.now)
end

-- The end of the lease that makes room for `cost`, if nobody renews or releases one before; or
-- `last`, if more than MAX_FORESEEN holders are in the way.
local function room_at(s, cost, last)
  local in_the_way = s.taken + cost - s.limit
  if in_the_way <= 0 then return 0 end
  -- By rank, since finding an offset takes time in proportion to it.
  local head = redis.call('ZCOUNT', s.key, '-inf', '(' .. FIRST_TIME)
  local any_has_several = head > 2
  for first = head, head + MAX_FORESEEN - 1, PAGE do
    local found = redis.call('ZRANGE', s.key, first, first + PAGE - 1, 'WITHSCORES')
    if not found[1] then return last end
    for i = 1, #found, 2 do
      in_the_way = in_the_way - (any_has_several and places_of(s, found[i]) or 1)
      if in_the_way <= 0 then return tonumber(found[i + 1]) end
    end
  end
  return last
end

-- The places taken, the end of the last lease, the time at which there is room for `cost`, and the
-- places and the end of the verb's own lease.
function concurrency.reply(s, cost, fits)
  local last = s.taken > 0 and tonumber(redis.call('ZREVRANGE', s.key, 0, 0, 'WITHSCORES')[2]) or 0
  local own = s.ends and places_of(s, s.id) or 0
  return { s.taken, last, fits and 0 or room_at(s, cost, last), own, tonumber(s.ends or 0) }
end
