-- fixed_window: hash count, start [, leases]
--   count  taken in the window
--   start  its first microsecond, a multiple of the window
-- args: limit, window (us)

local fixed_window = {}
meters[3] = fixed_window

function fixed_window.load(key, args, clock)
  local s = { key = key, now = clock, leases = {}, count = 0, limit = args.limit, window = args.window }
  local h = redis.call('HMGET', key, 'count', 'start', 'leases')
  local start = tonumber(h[2] or 0)
  s.now = math.max(clock, start)
  if h[3] then s.leases, s.had_leases = read_leases(h[3]), true end
  s.start = s.now - math.fmod(s.now, s.window)
  if h[1] and start == s.start then s.count = tonumber(h[1]) end
  return s
end

function fixed_window.fits(s, cost)
  return s.count + cost <= s.limit
end

function fixed_window.take(s, cost)
  s.count = s.count + cost
end

function fixed_window.give(s, cost, taken)
  if not taken or taken >= s.start then
    s.count = math.max(0, s.count - cost)
  end
end

function fixed_window.save(s)
  save_hash(s, { 'count', s.count, 'start', s.start }, s.start + s.window - s.now)
end

function fixed_window.reply(s)
  return { s.count, s.start + s.window }
end
