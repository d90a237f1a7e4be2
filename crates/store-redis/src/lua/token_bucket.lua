-- token_bucket: hash tokens, last_refill, limit
--   tokens       whole tokens at last_refill (negative after the limit was lowered)
--   last_refill  microsecond when the last whole token was added
--   limit        rate/window/burst in force at the last change, to carry over usage to a new limit;
--                then, if there are any, ;part;pending: the fraction of the next token at
--                last_refill in 1/window (less than a microsecond's worth), and the leases and
--                grants
-- args: text: the value of `limit` for this limit

-- Refills s for `elapsed` microseconds.
local function refill(s, elapsed, rate)
  local missing = (s.burst - s.tokens) * s.window
  if elapsed * rate > 2 * missing + s.window then
    s.tokens, s.part = s.burst, 0
    return
  end
  local whole, part = muldiv(elapsed, rate, s.window)
  part = part + s.part
  if part >= s.window then
    whole, part = whole + 1, part - s.window
  end
  s.tokens, s.part = s.tokens + whole, part
  if s.tokens >= s.burst then
    s.tokens, s.part = s.burst, 0
  end
end

-- The time when the last whole token was added at `rate`, and the fraction since the next
-- microsecond.
local function last_whole(s, rate)
  local part = math.fmod(s.part, rate)
  return s.now - (s.part - part) / rate, part
end

-- Time until the bucket is full, if all grants are spent.
local function bucket_life(s)
  return muldiv(s.window, s.burst - math.min(s.tokens, 0) + s.granted, s.rate) + 1
end

-- Rate, window (us) and burst.
local function terms(text)
  local rate, window, burst = string.match(text, '(%d+)/(%d+)/(%d+)$')
  return tonumber(rate), tonumber(window), tonumber(burst)
end

-- A bucket of h: {tokens or nil, since, limit}.
local function load_bucket(key, args, clock, h)
  local s = { key = key, now = clock, leases = {}, grants = {}, granted = 0, done = {}, part = 0, limit = args.text }
  s.rate, s.window, s.burst = terms(args.text)
  s.tokens, s.flow, s.named_rate = s.burst, s.rate, s.rate
  if not h[1] then return s end

  local since = tonumber(h[2])
  s.tokens, s.since, s.now = h[1], since, math.max(clock, since)
  local left, part, pending = string.match(h[3], '^([^;]*);(%d+);(.*)$')
  if left then
    s.part = tonumber(part)
    read_pending(s, pending)
    s.had_pending = has_pending(s)
  else
    left = h[3]
  end
  if left ~= s.limit then
    s.flow, s.changed = tonumber(string.match(left, '%d+')), true
  end
  return s, left
end

local function save_bucket(s, tokens_name, tokens, since_name, limit_name)
  s.flow = s.rate
  local since, part = last_whole(s, s.rate)
  local limit = s.limit
  if part > 0 or has_pending(s) then
    limit = string.format('%s;%.0f;%s', limit, part, write_summary(s))
  end
  -- Redis has converted the hash to a hash table because of the length of the field. Recreate it as
  -- a list, whose values fast_path.lua reads by their order.
  if s.had_pending and not has_pending(s) and redis.call('HLEN', s.key) == 3 then redis.call('DEL', s.key) end
  redis.call('HSET', s.key, tokens_name, tokens, since_name, since, limit_name, limit)
  expire(s, bucket_life(s))
end

local token_bucket = {}
meters[1] = token_bucket

function token_bucket.load(key, args, clock)
  local h = redis.call('HMGET', key, 'tokens', 'last_refill', 'limit')
  h[1] = h[1] and assert(tonumber(h[1]), 'tokens is not a number')
  local s, limit = load_bucket(key, args, clock, h)
  if s.changed then
    s.tokens = s.tokens + s.burst - tonumber(string.match(limit, '/(%d+)$'))
  end
  return s
end

function token_bucket.keep_rate(s)
  s.rate = s.flow
  s.limit = string.gsub(s.limit, '%d+', string.format('%.0f', s.flow), 1)
end

function token_bucket.advance(s, to)
  if s.since then refill(s, to - s.since, s.flow) end
  s.since = to
end

function token_bucket.fits(s, cost)
  return s.tokens >= cost
end

function token_bucket.left(s)
  return math.max(0, s.tokens)
end

function token_bucket.room(s)
  return math.max(0, s.tokens + MAX_DEBT * s.burst)
end

function token_bucket.take(s, cost)
  s.tokens = s.tokens - cost
end

token_bucket.record = token_bucket.take

-- Returns whole tokens and a fraction.
local function give_tokens(s, whole, part)
  s.tokens, s.part = s.tokens + whole, s.part + part
  if s.part >= s.window then
    s.tokens, s.part = s.tokens + 1, s.part - s.window
  end
  if s.tokens >= s.burst then
    s.tokens, s.part = s.burst, 0
  end
end

-- a - b of whole tokens and fractions, with the fraction in 0 .. s.window.
local function minus(s, whole, part, less_whole, less_part)
  whole, part = whole - less_whole, part - less_part
  if part < 0 then return whole - 1, part + s.window end
  return whole, part
end

-- The smaller of two numbers of tokens.
local function least(whole, part, other_whole, other_part)
  if whole < other_whole or whole == other_whole and part < other_part then return whole, part end
  return other_whole, other_part
end

function token_bucket.give(s, cost, taken)
  if not taken then return give_tokens(s, cost, 0) end
  -- Less what can have refilled since, at the rate of this limit or of the one that was in force.
  local elapsed, rate = math.max(0, s.now - taken), math.max(s.named_rate, s.flow)
  if elapsed * rate > (2 * cost + 1) * s.window then return end
  local whole, part = minus(s, cost, 0, muldiv(elapsed, rate, s.window))
  if whole >= 0 then give_tokens(s, whole, part) end
end

-- What a lease can return.
local function returnable(s, l)
  return minus(s, l.units, 0, l.lost, l.part)
end

-- All leases together return at most what is missing now. What exceeds it has refilled, of the
-- oldest first.
function token_bucket.note_refilled(s)
  local whole, part = 0, 0
  for _, l in ipairs(s.leases) do
    local w, p = returnable(s, l)
    whole, part = whole + w, part + p
  end
  local rest = math.fmod(part, s.window)
  whole, part = whole + (part - rest) / s.window, rest
  whole, part = minus(s, whole, part, minus(s, s.burst - s.tokens, 0, 0, s.part))
  for _, l in ipairs(s.leases) do
    if whole < 0 or whole == 0 and part == 0 then return end
    local w, p = returnable(s, l)
    w, p = least(w, p, whole, part)
    l.lost, l.part = l.lost + w, l.part + p
    if l.part >= s.window then
      l.lost, l.part = l.lost + 1, l.part - s.window
    end
    whole, part = minus(s, whole, part, w, p)
  end
end

function token_bucket.give_lease(s, l, cost)
  local whole, part = returnable(s, l)
  give_tokens(s, least(whole, part, cost, 0))
end

-- Whether the stored bucket is full at the same time as after an acquisition: then nothing was taken
-- since. Leases that expire from here on only return what they hold.
function token_bucket.is_unchanged(s, full_at, fraction)
  if not s.since or #s.grants > 0 then return false end
  local micros, grains = muldiv(s.burst - s.tokens, s.window, s.rate)
  grains = grains - s.part
  if grains < 0 then
    local borrowed = math.ceil(-grains / s.rate)
    micros, grains = micros - borrowed, grains + borrowed * s.rate
  end
  return s.flow == s.rate and s.since + micros == full_at and grains == fraction
end

function token_bucket.save(s)
  save_bucket(s, 'tokens', s.tokens, 'last_refill', 'limit')
end

function token_bucket.reply(s)
  local since, part = last_whole(s, s.flow)
  return { s.tokens, part, s.flow, since }
end
