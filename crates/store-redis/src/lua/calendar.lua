-- calendar: hash count, start, finish [, leases]
--   count   units taken in the period
--   start   first microsecond of the period
--   finish  first microsecond after the period
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
  local s = { key = key, now = clock, leases = {}, count = 0, limit = args.limit }
  local h = redis.call('HMGET', key, 'count', 'start', 'finish', 'leases')
  s.now = math.max(clock, tonumber(h[2] or 0))
  if h[4] then s.leases, s.had_leases = read_leases(h[4]), true end
  if h[1] and s.now < tonumber(h[3]) then
    s.count, s.start, s.finish = tonumber(h[1]), tonumber(h[2]), tonumber(h[3])
  else
    s.start, s.finish = period(args.text, s.now)
    s.outside = not s.start
  end
  return s
end

calendar.fits, calendar.take, calendar.give = fixed_window.fits, fixed_window.take, fixed_window.give

function calendar.save(s)
  redis.call('HSET', s.key, 'count', s.count, 'start', s.start, 'finish', s.finish)
  if #s.leases > 0 then
    redis.call('HSET', s.key, 'leases', write_leases(s.leases))
  elseif s.had_leases then
    redis.call('HDEL', s.key, 'leases')
  end
  expire(s, s.finish - s.now)
end

function calendar.reply(s)
  return { s.count, s.finish }
end
