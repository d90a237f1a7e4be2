-- token_bucket: hash tokens, last_refill, part, limit [, leases]
--   tokens       whole tokens at last_refill (below 0 when the limit was lowered)
--   part         the next token's progress, in 1/window
--   last_refill  microseconds
--   limit        rate/burst that were in force, to carry over what was used when they change
-- args: rate, window (us), burst, microseconds from empty to full

-- Lets tokens flow into s until s.now.
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

-- How long the state means anything.
local function bucket_life(s)
  if s.tokens >= 0 then return s.fill end
  return s.fill + muldiv(s.window, -s.tokens, s.rate) + 1
end

local token_bucket = {}
meters.token_bucket = token_bucket

function token_bucket.load(key, args, clock)
  local s = {
    key = key, now = clock, leases = {}, part = 0,
    rate = tonumber(args[1]), window = tonumber(args[2]), burst = tonumber(args[3]), fill = tonumber(args[4]),
  }
  s.tokens, s.flow = s.burst, s.rate
  s.limit = args[1] .. '/' .. args[3]
  local h = redis.call('HMGET', key, 'tokens', 'last_refill', 'part', 'limit', 'leases')
  if not h[1] then return s end

  local at = tonumber(h[2])
  s.tokens, s.part, s.now = tonumber(h[1]), tonumber(h[3]), math.max(clock, at)
  if h[5] then s.leases, s.had_leases = read_leases(h[5]), true end
  if h[4] ~= s.limit then
    local rate, burst = string.match(h[4], '(%d+)/(%d+)')
    s.tokens, s.flow, s.changed = s.tokens + s.burst - tonumber(burst), tonumber(rate), true
  end
  refill(s, s.now - at, s.flow)
  return s
end

function token_bucket.fits(s, cost)
  return s.tokens >= cost
end

function token_bucket.take(s, cost)
  s.tokens = s.tokens - cost
end

function token_bucket.give(s, cost)
  s.tokens = s.tokens + cost
  if s.tokens >= s.burst then
    s.tokens, s.part = s.burst, 0
  end
end

function token_bucket.save(s)
  s.flow = s.rate
  save_hash(s, { 'tokens', s.tokens, 'last_refill', s.now, 'part', s.part, 'limit', s.limit }, bucket_life(s))
end

function token_bucket.reply(s)
  return { s.tokens, s.part, s.flow }
end
