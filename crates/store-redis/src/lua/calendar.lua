-- calendar: hash count, start, finish [, leases]
--   count   units taken in the period
--   start   first microsecond of the period
--   finish  first microsecond after the period
--   leases  leases and grants, if there are any
-- args: limit; text: first microseconds of consecutive periods around now, comma-separated

local calendar = {}
meters[4] = calendar

-- The listed period that contains `now`, or nil.
local function period(bounds, now)
  local start
  for text in string.gmatch(bounds, '%d+') do
    local bound = tonumber(text)
    if start and now < bound then return start, bound end
    if now < bound then break end
    start = bound
  end
end

function calendar.load(key, args, clock)
  local s = { key = key, now = clock, count = 0, limit = args.limit }
  local h = redis.call('HMGET', key, 'count', 'start', 'finish', 'leases')
  s.now = math.max(clock, tonumber(h[2] or 0))
  read_pending(s, h[4])
  s.had_pending = h[4]
  if h[1] and s.now < tonumber(h[3]) then
    s.count, s.start, s.finish = tonumber(h[1]), tonumber(h[2]), tonumber(h[3])
  else
    s.start, s.finish = period(args.text, s.now)
    s.outside = not s.start
  end
  return s
end

calendar.fits, calendar.left, calendar.give = fixed_window.fits, fixed_window.left, fixed_window.give
calendar.room, calendar.take, calendar.record = fixed_window.room, fixed_window.take, fixed_window.record

function calendar.save(s)
  redis.call('HSET', s.key, 'count', s.count, 'start', s.start, 'finish', s.finish)
  if has_pending(s) then
    redis.call('HSET', s.key, 'leases', (write_pending(s)))
  elseif s.had_pending then
    redis.call('HDEL', s.key, 'leases')
  end
  expire(s, s.finish - s.now)
end

function calendar.reply(s)
  return { s.count, s.finish }
end
