-- Fast path of reservations: reserve, and commit for what was spent, of one key. It does not read
-- the leases one by one: a summary in front of them says whether one has expired, and a lease is
-- appended to the text, or cut out of it. It decides only what it admits, and nothing is written
-- until that is certain; otherwise the slow path decides.

repeat
  local verb, id, terms = ARGV[1], ARGV[2], ARGV[3]
  local reserves = verb == 'reserve'
  if not reserves and verb ~= 'commit' or KEYS[2] then break end
  -- x and y are, for a token bucket, the time per token and the burst; else the limit and the window.
  local algorithm, cost, x, y, text = struct.unpack('<Bddds', ARGV[4])
  local is_bucket, is_counter = algorithm == 1, algorithm == 5
  if is_bucket and x == 0 or not (is_bucket or is_counter or algorithm == 3) then break end
  local find, sub, match, format, call = string.find, string.sub, string.match, string.format, redis.call
  local lease, spent
  if reserves then
    -- Not a number if the check is not required.
    lease = tonumber(terms)
    if not lease then break end
  else
    id, spent = match(id, '^(%x+),(%d+)')
    if not spent or terms ~= '' then break end
    spent = spent + 0
  end

  local time, h = call('TIME')
  local now, key, opening = time[1] * 1000000 + time[2], KEYS[1], text .. ';~'
  if is_bucket then
    h, opening = call('HMGET', key, 'limit', 'last_refill', 'tokens'), text .. ';0;~'
  elseif is_counter then
    h = call('HMGET', key, 'window', 'start', 'current', 'previous')
  else
    h = call('HMGET', key, 'window', 'start', 'count')
  end
  local stored, count = h[1], h[3]
  if not count ~= not stored then break end

  -- The summary: see write_summary in prelude.lua. Each entry follows a semicolon.
  local ends, lives_until, units, pending, settled, leases, done = 9007199254740992, 0, 0, 0, 0, '', ''
  if stored and stored ~= text then
    local length, first = #opening
    if find(stored, opening, 1, true) ~= 1 then break end
    ends, lives_until, units, pending, settled, length, first =
      match(stored, '^(%d+),(%d+),(%d+),(%d+),(%d+),(%d+)()', length + 1)
    if not ends then break end
    ends, lives_until, units, pending, settled = ends + 0, lives_until + 0, units + 0, pending + 0, settled + 0
    if ends <= now then break end
    leases, done = sub(stored, first, first + length - 1), sub(stored, first + length)
  end

  -- a: the tokens, or the units in the window; b: the time of the last whole token, or the start of
  -- the window; c: the units in the window before.
  local a, b, c
  if is_bucket then
    a, b = y, now
    if count then
      local elapsed = now - h[2]
      count = count + 0
      if elapsed < 0 or count > y then break end
      if elapsed < (y - count) * x then
        local rest = elapsed % x
        a, b = count + (elapsed - rest) / x, now - rest
      end
    end
  else
    local begun = (h[2] or 0) + 0
    if begun > now then break end
    a, b, c = 0, now - now % y, 0
    if begun == b then
      a, c = count + 0, (h[4] or 0) + 0
    elseif is_counter and count and begun + y == b then
      c = count + 0
    end
  end

  local life, shown = 0
  if reserves then
    if pending >= 128 or find(leases, ';' .. id .. ':', 1, true) or find(done, ';!' .. id .. '/', 1, true) then break end
    if is_bucket then
      -- All leases together could return more than is missing: some of it has refilled.
      if a < cost or units > 0 and units * x > (y - a) * x - (now - b) then break end
      a = a - cost
    else
      local counted = c * (b + y - now)
      if counted >= 9007199254740992 or counted > (x - a - cost) * y then break end
      a = a + cost
    end
    local expires = now + lease
    leases = leases .. format(';%s:%d:%d:%d', id, cost, now, expires)
    if expires < ends then ends = expires end
    units, pending, life, shown = units + cost, pending + 1, lease, leases
  else
    local from, to = find(leases, ';' .. id .. ':', 1, true)
    if not from then break end
    local held, taken, expires, more, after = match(leases, '^(%d+):(%d+):(%d+)([:%d]*)()', to + 1)
    local used = more == '' and 0 or match(more, '^:(%d+):0:0$')
    if not used then break end
    held, taken = held + 0, taken + 0
    local unused = spent - used
    if unused < 0 then unused = 0 end
    local returned = held - unused
    if returned < 0 then break end
    if is_bucket then
      a = a + returned
      if a >= y then a, b = y, now end
    elseif taken >= b then
      a = a - returned
      if a < 0 then a = 0 end
    elseif taken + y >= b then
      c = c - returned
      if c < 0 then c = 0 end
    end
    leases = sub(leases, 1, from - 1) .. sub(leases, after)
    if settled >= 16 then
      local second = find(done, ';', 2, true)
      done = sub(done, second)
    else
      settled = settled + 1
    end
    local own = format(';!%s/%d/%d/0/%s', id, spent, returned, expires)
    done, units, pending, shown = done .. own, units - held, pending - 1, leases .. own
  end

  -- The TTL is longer than needed, so that it is not set at each call.
  local needed = b + y - now
  if is_bucket then
    needed = (y - (a < 0 and a or 0)) * x + 1
  elseif is_counter then
    needed = needed + y
  end
  if needed < life then needed = life end
  local renews = now + needed > lives_until
  if renews then lives_until = now + needed + 10000000 end
  local value = format('%s%d,%d,%d,%d,%d,%d%s', opening, ends, lives_until, units, pending, settled, #leases, leases .. done)
  local answer
  if is_bucket then
    call('HSET', key, 'tokens', format('%d', a), 'last_refill', format('%d', b), 'limit', value)
    answer = { 1, now, sub(shown, 2), a, 0, match(text, '^%d+') + 0, b }
  elseif is_counter then
    call('HSET', key, 'start', format('%d', b), 'previous', format('%d', c), 'current', format('%d', a), 'window', value)
    answer = { 1, now, sub(shown, 2), b, c, a }
  else
    call('HSET', key, 'count', format('%d', a), 'start', format('%d', b), 'window', value)
    answer = { 1, now, sub(shown, 2), a, b + y }
  end
  if renews then call('PEXPIRE', key, format('%d', (lives_until - now) / 1000 + 1000)) end
  return { answer }
until true
