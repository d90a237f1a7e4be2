-- leaky_bucket: hash level, last_leak, limit
--   level      what stands in the bucket, whole units
--   last_leak  microseconds: when the last whole unit had leaked
--   limit      the rate that was in force; then part and leases as the token bucket's
-- args: rate, window (us), burst
-- The arithmetic is the token bucket's: tokens = burst - level.

local leaky_bucket = {}
meters.leaky_bucket = leaky_bucket

function leaky_bucket.load(key, args, clock)
  local h = redis.call('HMGET', key, 'level', 'last_leak', 'limit')
  h[1] = h[1] and tonumber(args[3]) - assert(tonumber(h[1]), 'level is no number')
  local s, since = load_bucket(key, args, clock, h, args[1])
  if since then refill(s, s.now - since, s.flow) end
  return s
end

leaky_bucket.fits, leaky_bucket.take = meters.token_bucket.fits, meters.token_bucket.take
leaky_bucket.give, leaky_bucket.reply = meters.token_bucket.give, meters.token_bucket.reply

function leaky_bucket.save(s)
  save_bucket(s, 'level', s.burst - s.tokens, 'last_leak')
end
