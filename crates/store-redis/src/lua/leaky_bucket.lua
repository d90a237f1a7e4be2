-- leaky_bucket: hash level, last_leak, leak
--   level      whole units in the bucket
--   last_leak  microsecond when the last whole unit leaked
--   leak       like `limit` of the token bucket, but with a first word that identifies a leaky
--              bucket to code that reads the values of the hash without their names
-- args: text: the value of `leak` for this limit
-- The arithmetic is that of the token bucket: tokens = burst - level.

local leaky_bucket = {}
meters[2] = leaky_bucket

function leaky_bucket.load(key, args, clock)
  local h = redis.call('HMGET', key, 'level', 'last_leak', 'leak')
  local _, _, burst = terms(args.text)
  h[1] = h[1] and burst - assert(tonumber(h[1]), 'level is not a number')
  return (load_bucket(key, args, clock, h))
end

leaky_bucket.advance, leaky_bucket.fits, leaky_bucket.left = token_bucket.advance, token_bucket.fits, token_bucket.left
leaky_bucket.room, leaky_bucket.take, leaky_bucket.record = token_bucket.room, token_bucket.take, token_bucket.record
leaky_bucket.give, leaky_bucket.reply = token_bucket.give, token_bucket.reply
leaky_bucket.note_refilled, leaky_bucket.give_lease = token_bucket.note_refilled, token_bucket.give_lease
leaky_bucket.is_unchanged, leaky_bucket.keep_rate = token_bucket.is_unchanged, token_bucket.keep_rate

function leaky_bucket.save(s)
  save_bucket(s, 'level', s.burst - s.tokens, 'last_leak', 'leak')
end
