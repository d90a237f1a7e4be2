-- leaky_bucket: hash level, last_leak, leak
--   level      what stands in the bucket, whole units
--   last_leak  microseconds: when the last whole unit had leaked
--   leak       as the token bucket's limit, after a word that no limit of a token bucket begins with: whoever reads
--              the values of a hash without their names can tell whose they are
-- args: text: what `leak` says of it
-- The arithmetic is the token bucket's: tokens = burst - level.

local leaky_bucket = {}
meters[2] = leaky_bucket

function leaky_bucket.load(key, args, clock)
  local h = redis.call('HMGET', key, 'level', 'last_leak', 'leak')
  local _, _, burst = terms(args.text)
  h[1] = h[1] and burst - assert(tonumber(h[1]), 'level is no number')
  local s, since = load_bucket(key, args, clock, h)
  if since then refill(s, s.now - since, s.flow) end
  return s
end

leaky_bucket.fits, leaky_bucket.take = token_bucket.fits, token_bucket.take
leaky_bucket.give, leaky_bucket.reply = token_bucket.give, token_bucket.reply

function leaky_bucket.save(s)
  save_bucket(s, 'level', s.burst - s.tokens, 'last_leak', 'leak')
end
