-- sliding_window: a sorted set with a member for each admitted request
--   score   time of the request, in microseconds
--   member  n:units:time, where n distinguishes requests of the same microsecond; its seven digits
--           come first, so that the last member of a microsecond has the largest n
-- Two more members sort before these, at scores that are not times:
--   '#'     its score is the sum of all units
--   '?...'  at score -1: the leases and grants
-- args: limit, window (us)

local sliding_window = {}
meters[6] = sliding_window

local FIRST_TIME = '1000000000000'

local function units(member)
  return tonumber(string.match(member, '^%d+:(%d+)'))
end

function sliding_window.load(key, args, clock)
  local s = { key = key, now = clock, leases = {}, grants = {}, granted = 0, done = {}, total = 0, limit = args.limit, window = args.window }
  local newest = redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')
  if not newest[1] then return s end

  s.now = math.max(clock, tonumber(newest[2]))
  s.cutoff = string.format('%.0f', s.now - s.window)
  local head = redis.call('ZRANGEBYSCORE', key, '-inf', '(' .. FIRST_TIME, 'WITHSCORES')
  for i = 1, #head, 2 do
    if head[i] == '#' then
      s.total = tonumber(head[i + 1])
    else
      s.pending_member = head[i]
      read_pending(s, string.sub(head[i], 2))
    end
  end
  local gone = redis.call('ZRANGEBYSCORE', key, FIRST_TIME, s.cutoff)
  for _, member in ipairs(gone) do
    s.total = s.total - units(member)
  end
  s.gone = #gone > 0
  s.newest_member = newest[1]
  s.newest_at = tonumber(newest[2])
  return s
end

function sliding_window.fits(s, cost)
  return s.total + cost <= s.limit
end

function sliding_window.left(s)
  return math.max(0, s.limit - s.total)
end

function sliding_window.room(s)
  return math.max(0, (1 + MAX_DEBT) * s.limit - s.total)
end

-- No member is later than `at`.
local function add(s, cost, at)
  local n = 0
  if s.newest_at == at then
    n = tonumber(string.match(s.newest_member, '^%d+'), 10) + 1
  end
  s.total = s.total + cost
  s.newest_at, s.newest_member = at, string.format('%07d:%.0f:%.0f', n, cost, at)
  redis.call('ZADD', s.key, at, s.newest_member)
end

function sliding_window.take(s, cost)
  add(s, cost, s.now)
end

function sliding_window.record(s, cost, at)
  s.must_save = true
  if at > s.now - s.window then add(s, cost, at) end
end

-- Removes `cost` units from the members that the command finds in a range, in its order.
local function remove(s, cost, command, from, to)
  while cost > 0 do
    local found = redis.call(command, s.key, from, to, 'WITHSCORES', 'LIMIT', 0, 64)
    if not found[1] then return end
    for i = 1, #found, 2 do
      if cost == 0 then return end
      local have = units(found[i])
      local less = math.min(have, cost)
      redis.call('ZREM', s.key, found[i])
      if less < have then
        local n, when = string.match(found[i], '^(%d+):%d+:(%d+)')
        redis.call('ZADD', s.key, found[i + 1], string.format('%s:%.0f:%s', n, have - less, when))
      end
      cost, s.total = cost - less, s.total - less
    end
  end
end

function sliding_window.give(s, cost, taken)
  s.must_save = true
  local since = '(' .. string.format('%.0f', s.now - s.window)
  if taken then
    -- The newest that are not later.
    remove(s, cost, 'ZREVRANGEBYSCORE', string.format('%.0f', taken), since)
  else
    remove(s, cost, 'ZRANGEBYSCORE', since, '+inf')
  end
  local newest = redis.call('ZREVRANGE', s.key, 0, 0, 'WITHSCORES')
  s.newest_member, s.newest_at = newest[1], tonumber(newest[2] or 0)
end

function sliding_window.save(s)
  if s.gone then
    redis.call('ZREMRANGEBYSCORE', s.key, FIRST_TIME, s.cutoff)
  end
  if s.pending_member then
    redis.call('ZREM', s.key, s.pending_member)
  end
  if s.total == 0 and not has_pending(s) then
    redis.call('DEL', s.key)
    return
  end
  if has_pending(s) then
    redis.call('ZADD', s.key, s.total, '#', -1, '?' .. (write_pending(s)))
  else
    redis.call('ZADD', s.key, s.total, '#')
  end
  expire(s, s.window)
end

-- The total, the time of the newest entry, and that of the entry that makes room for `cost` when it
-- expires. With leases, and if a check is denied because of grants, the engine needs every entry.
function sliding_window.reply(s, cost, fits)
  local answer = { s.total, s.total > 0 and s.newest_at or 0, 0 }
  local in_the_way = s.total + cost - s.limit
  local every = #s.leases > 0 or #s.grants > 0 and not fits
  if (fits or in_the_way <= 0) and not every then return answer end

  local from = s.cutoff and '(' .. s.cutoff or FIRST_TIME
  local seen = 0
  repeat
    local found = redis.call('ZRANGEBYSCORE', s.key, from, '+inf', 'WITHSCORES', 'LIMIT', seen, 64)
    for i = 1, #found, 2 do
      local have, at = units(found[i]), tonumber(found[i + 1])
      if in_the_way > 0 then
        in_the_way = in_the_way - have
        answer[3] = at
      end
      if every then
        answer[#answer + 1] = at
        answer[#answer + 1] = have
      end
    end
    seen = seen + #found / 2
  until #found == 0 or (in_the_way <= 0 and not every)
  return answer
end
