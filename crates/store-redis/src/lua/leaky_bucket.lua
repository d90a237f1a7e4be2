-- leaky_bucket: hash level, last_leak, part, limit [, leases]
--   level      what stands in the bucket, rounded up
--   part       how much of the last unit has leaked, in 1/window
--   last_leak  microseconds
--   limit      the rate that was in force
-- args: rate, window (us), burst, microseconds from full to empty
-- The arithmetic is the token bucket's: tokens = burst - level.

local leaky_bucket = {}
meters.leaky_bucket = leaky_bucket

function leaky_bucket.load(key, args, clock)
  local s = {
    key = key, now = clock, leases = {}, part = 0,
    rate = tonumber(args[1]), window = tonumber(args[2]), burst = tonumber(args[3]), fill = tonumber(args[4]),
  }
  s.tokens, s.flow = s.burst, s.rate
  local h = redis.call('HMGET', key, 'level', 'last_leak', 'part', 'limit', 'leases')
  if not h[1] then return s end

  local at = tonumber(h[2])
  s.tokens, s.part, s.now = s.burst - tonumber(h[1]), tonumber(h[3]), math.max(clock, at)
  if h[5] then s.leases, s.had_leases = read_leases(h[5]), true end
  if h[4] ~= args[1] then
    s.flow, s.changed = tonumber(h[4]), true
  end
  refill(s, s.now - at, s.flow)
  return s
end

leaky_bucket.fits, leaky_bucket.take = meters.token_bucket.fits, meters.token_bucket.take
leaky_bucket.give, leaky_bucket.reply = meters.token_bucket.give, meters.token_bucket.reply

function leaky_bucket.save(s)
  s.flow = s.rate
  save_hash(s, { 'level', s.burst - s.tokens, 'last_leak', s.now, 'part', s.part, 'limit', s.rate }, bucket_life(s))
end
