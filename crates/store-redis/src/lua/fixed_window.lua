-- fixed_window: hash count, start, window
--   count   units taken in the window
--   start   first microsecond of the window, a multiple of its length
--   window  length in microseconds; then ;pending, if there are leases or grants
-- args: limit, window (us); text: the window

local fixed_window = {}
meters[3] = fixed_window

function fixed_window.load(key, args, clock)
  local s = { key = key, now = clock, count = 0, limit = args.limit, window = args.window }
  local h = redis.call('HMGET', key, 'count', 'start', 'window')
  local start = tonumber(h[2] or 0)
  s.now = math.max(clock, start)
  read_window(s, h[3])
  s.start = s.now - math.fmod(s.now, s.window)
  s.finish = s.start + s.window
  if h[1] and start == s.start then s.count = tonumber(h[1]) end
  return s
end

function fixed_window.fits(s, cost)
  return cost <= s.limit - s.count
end

function fixed_window.left(s)
  return math.max(0, s.limit - s.count)
end

function fixed_window.room(s)
  return math.max(0, math.min((1 + MAX_DEBT) * s.limit, MAX_UNITS) - s.count)
end

function fixed_window.take(s, cost)
  s.count = s.count + cost
end

function fixed_window.record(s, cost, at)
  if at >= s.start then s.count = s.count + cost end
end

function fixed_window.give(s, cost, taken)
  if not taken or taken >= s.start then
    s.count = math.max(0, s.count - cost)
  end
end

function fixed_window.save(s)
  redis.call('HSET', s.key, 'count', s.count, 'start', s.start, 'window', write_window(s))
  expire(s, s.finish - s.now)
end

function fixed_window.reply(s)
  return { s.count, s.finish }
end
