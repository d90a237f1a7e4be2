-- sliding_window_counter: hash start, previous, current, window
--   start     first microsecond of the window, a multiple of its length
--   current   units taken in the window
--   previous  units taken in the previous window
--   window    length in microseconds; then ;pending, if there are leases or grants
-- args: limit, window (us); text: the window

local sliding_window_counter = {}
meters[5] = sliding_window_counter

function sliding_window_counter.load(key, args, clock)
  local s = {
    key = key, now = clock, previous = 0, current = 0,
    limit = args.limit, window = args.window,
  }
  local h = redis.call('HMGET', key, 'start', 'previous', 'current', 'window')
  local start = tonumber(h[1] or 0)
  s.now = math.max(clock, start)
  read_window(s, h[4])
  s.start = s.now - math.fmod(s.now, s.window)
  s.finish = s.start + s.window
  if h[1] and s.start == start then
    s.previous, s.current = tonumber(h[2]), tonumber(h[3])
  elseif h[1] and s.start == start + s.window then
    s.previous = tonumber(h[3])
  end
  return s
end

function sliding_window_counter.fits(s, cost)
  local room = s.limit - s.current - cost
  if room < 0 then return false end
  local counted, rest = muldiv(s.finish - s.now, s.previous, s.window)
  return counted < room or (counted == room and rest == 0)
end

-- What is left of a limit.
local function left_of(s, limit)
  local counted, rest = muldiv(s.finish - s.now, s.previous, s.window)
  if rest > 0 then counted = counted + 1 end
  return math.max(0, limit - s.current - counted)
end

function sliding_window_counter.left(s)
  return left_of(s, s.limit)
end

-- The counters of the engine have 32 bits.
function sliding_window_counter.room(s)
  return left_of(s, math.min((1 + MAX_DEBT) * s.limit, 4294967295))
end

function sliding_window_counter.take(s, cost)
  s.current = s.current + cost
end

function sliding_window_counter.record(s, cost, at)
  if at >= s.start then
    s.current = s.current + cost
  elseif at >= s.start - s.window then
    s.previous = s.previous + cost
  end
end

function sliding_window_counter.give(s, cost, taken)
  if taken and taken + s.window < s.start then return end
  if taken and taken < s.start then
    s.previous = math.max(0, s.previous - cost)
    return
  end
  local here = math.min(cost, s.current)
  s.current = s.current - here
  if not taken then
    s.previous = math.max(0, s.previous - (cost - here))
  end
end

function sliding_window_counter.save(s)
  redis.call('HSET', s.key, 'start', s.start, 'previous', s.previous, 'current', s.current, 'window', write_window(s))
  expire(s, s.start + 2 * s.window - s.now)
end

function sliding_window_counter.reply(s)
  return { s.start, s.previous, s.current }
end
