-- sliding_window: a sorted set with a member for each admitted request
--   score   time of the request, in microseconds
--   member  n:units:time. Requests of the same microsecond share a member; n is 0000000, and more
--           only in members of servers that wrote several of them
-- Two more members sort before these, at scores that are not times:
--   '#'     its score is the sum of all units
--   '?...'  at score -1: the leases and grants
-- args: limit, window (us)

local sliding_window = {}
meters[6] = sliding_window

-- SlidingWindow::MAX_FORESEEN and Concurrency::MAX_FORESEEN of the engine.
local MAX_FORESEEN = 256
local PAGE = 64
local FIRST_TIME = '1000000000000'

local function units(member)
  return tonumber(string.match(member, '^%d+:(%d+)'))
end

-- Deletes the entries that have left the window, so that peeks and denials, which save nothing, do
-- not read them again and again. A server that refuses writes still decides.
local function delete_gone(s)
  local saved = redis.pcall('ZADD', s.key, s.total, '#')
  if type(saved) == 'number' then
    redis.call('ZREMRANGEBYSCORE', s.key, FIRST_TIME, s.cutoff)
    s.gone = false
  end
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
  if #gone > PAGE then delete_gone(s) end
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
  local n, before = '0000000', 0
  if s.newest_at == at then
    n, before = string.match(s.newest_member, '^(%d+):(%d+)')
    redis.call('ZREM', s.key, s.newest_member)
  end
  s.total = s.total + cost
  s.newest_at, s.newest_member = at, string.format('%s:%.0f:%.0f', n, before + cost, at)
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
    local found = redis.call(command, s.key, from, to, 'WITHSCORES', 'LIMIT', 0, PAGE)
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

-- The total, the time of the newest entry, and that of the entry that makes room for `cost` and the
-- grants when it expires, or of a later one; 0 if grants are in the way besides all entries. With
-- leases, the engine needs every entry, of up to MAX_FORESEEN: it does not foresee more.
function sliding_window.reply(s, cost, fits)
  local answer = { s.total, s.total > 0 and s.newest_at or 0, 0 }
  local in_the_way = s.total + s.granted + cost - s.limit
  if fits or in_the_way > s.total then in_the_way = 0 end
  if s.total == 0 or in_the_way <= 0 and #s.leases == 0 then return answer end

  local live = redis.call('ZCOUNT', s.key, s.cutoff and '(' .. s.cutoff or FIRST_TIME, '+inf')
  local every = #s.leases > 0 and live <= MAX_FORESEEN
  -- By rank, since finding an offset takes time in proportion to it.
  local first, seen = redis.call('ZCARD', s.key) - live, 0
  local last = math.min(live, MAX_FORESEEN)
  while seen < last and (in_the_way > 0 or every) do
    local to = math.min(seen + PAGE, last)
    local found = redis.call('ZRANGE', s.key, first + seen, first + to - 1, 'WITHSCORES')
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
    seen = to
  end
  if in_the_way > 0 and seen < live then
    -- Each of the others has one unit or more.
    local rank = first + math.min(seen + in_the_way, live) - 1
    answer[3] = tonumber(redis.call('ZRANGE', s.key, rank, rank, 'WITHSCORES')[2])
  end
  return answer
end
