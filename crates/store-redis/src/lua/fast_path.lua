-- Fast path of almost every call: acquire and peek of states without leases and fractions, under
-- unchanged limits. Nothing is written until that is certain for all keys; otherwise the slow path
-- decides.
--
-- Hot loop: avoid closures (allocated per call), table growth, number formatting, tonumber (parses
-- a text twice) and command arguments. Data that most keys do not need is in a table of its own,
-- and a formatted number is reused if the next key needs it too.
--
-- Returns packed doubles: the time of the decision; the first number of each key; the second of
-- each key, negated if the key is denied on its own; and, if there are counters, a third of each
-- key, which only counters have.

repeat
  local verb, stakes, checks = ARGV[1], ARGV[3], ARGV[4]
  if verb ~= 'acquire' and verb ~= 'peek' then break end

  local keys, call, unpack_check = KEYS, redis.call, struct.unpack
  local count, staked = #keys, stakes ~= ''
  local time = call('TIME')
  local now = time[1] * 1000000 + time[2]
  -- Preallocated for two numbers of ten keys.
  local answers = { nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil }
  -- The write of each key: {algorithm, cost, whether only one number changes, the new TTL or false,
  -- window or burst, text}. In the most frequent case, an existing token bucket in mode s that
  -- gives one token and needs no new TTL, only the fields that change: 'tokens', 'both' (tokens and
  -- time) or nil (only the time).
  local plan = { nil, nil, nil, nil, nil, nil, nil, nil, nil, nil }
  local sure, all, counters, at = true, true, false, 1
  for i = 1, count do
    local algorithm, cost, x, y, text, next = unpack_check('<Bddds', checks, at)
    local special, key, fits, a, b, left, same, life = staked, keys[i]
    at = next

    if algorithm <= 2 then -- token_bucket, leaky_bucket: x is the time per token, or 0 if not a whole number, y the burst
      if x == 0 then sure = false break end
      -- HVALS is cheaper than HMGET. Values come in the order in which they were written, unless
      -- Redis has converted the hash to a hash table, as it does for a long lease field. Then the
      -- third value is not this limit, or the first is a time, which exceeds any burst. The state
      -- of the other kind of bucket has another third value, too.
      local h = call('HVALS', key)
      left = h[1]
      if not left then
        a, b, life, special = y, now, y * x, true
      else
        if h[3] ~= text then sure = false break end
        local elapsed = now - h[2]
        if elapsed < 0 then sure = false break end
        if algorithm == 1 then
          left = left + 0
          if left > y then sure = false break end
        else
          left, special = y - left, true
          if left < 0 then sure = false break end
        end
        -- Single assignments: a multiple assignment copies its values.
        local passed = 0
        if elapsed >= (y - left) * x then
          a = y
          b = now
          passed = elapsed
        elseif elapsed < x then
          a = left
          b = now - elapsed
          same = true
        else
          local rest = elapsed % x
          passed = elapsed - rest
          a = left + passed / x
          b = now - rest
        end
        -- The TTL is set to the fill time plus one second, and only when last_refill enters another
        -- step of half the fill time. Set it now if a step has passed or if the bucket is not full
        -- before it expires.
        local fill = y * x
        local into = b % (fill / 2)
        if passed > into or into + (y - a + cost) * x > fill + 1000000 then life, special = fill, true end
      end
      fits = a >= cost

    elseif algorithm == 3 then -- fixed_window: x is the limit, y the window
      local h = call('HMGET', key, 'count', 'start', 'window')
      local begun = (h[2] or 0) + 0
      if h[1] and h[3] ~= text or begun > now then sure = false break end
      local start = now - now % y
      a, b, special = 0, start + y, true
      if begun == start then a, same = h[1] + 0, true else life = b - now end
      fits = cost <= x - a

    elseif algorithm == 4 then -- calendar: x is the limit
      -- Only in a period that this key has state of: its end and the TTL are known.
      local h = call('HMGET', key, 'count', 'start', 'finish', 'leases')
      if not h[1] or h[4] or now - h[2] < 0 then sure = false break end
      a, b, same, special = h[1] + 0, h[3] + 0, true, true
      if now >= b then sure = false break end
      fits = cost <= x - a

    elseif algorithm == 5 then -- sliding_window_counter: x is the limit, y the window
      local h = call('HMGET', key, 'start', 'previous', 'current', 'window')
      local begun, c = (h[1] or 0) + 0, 0
      a, b, special = 0, now - now % y, true
      if begun == b then
        a, c, same = h[2] + 0, h[3] + 0, true
      else
        if begun + y == b then a = h[3] + 0 end
        life = b + 2 * y - now
      end
      local counted = a * (b + y - now)
      if h[1] and h[4] ~= text or begun > now or counted >= 9007199254740992 then sure = false break end
      fits = counted <= (x - c - cost) * y
      answers[2 * count + i], counters = c, true

    else
      sure = false
      break
    end
    if not fits then
      b = -b
      if not staked or string.find(stakes, '^[sl]', i + 1) then all = false end
    end
    answers[i], answers[count + i] = a, b
    if special or cost ~= 1 then
      plan[i] = { algorithm, cost, same or false, life or false, y, text }
    elseif same then
      plan[i] = 'tokens'
    elseif a ~= left + 1 then
      plan[i] = 'both'
    end
  end

  if not sure then break end
  if verb == 'acquire' and (all or staked) then
    local format, now_text, tokens_shown, tokens_text = string.format
    for i = 1, count do
      local key, how, a, b = keys[i], plan[i], answers[i], answers[count + i]
      if how == 'tokens' then
        answers[i] = a - 1
        call('HINCRBY', key, 'tokens', '-1')
      elseif not how or how == 'both' then
        a = a - 1
        answers[i] = a
        local since = now_text
        if b ~= now then
          since = format('%d', b)
        elseif not since then
          since = format('%d', now)
          now_text = since
        end
        if not how then
          call('HSET', key, 'last_refill', since)
        else
          if a ~= tokens_shown then
            tokens_shown, tokens_text = a, format('%d', a)
          end
          call('HSET', key, 'tokens', tokens_text, 'last_refill', since)
        end
      else
        local algorithm, cost, same, life, y, text = unpack(how)
        if staked then
          local stake, fits = string.sub(stakes, i + 1, i + 1), b > 0
          if not (stake == 's' and all or stake == 'a' and fits and all or stake == 'o' and fits) then
            -- Takes nothing.
            algorithm, life = 0, false
          end
        end
        if algorithm == 1 then
          a = a - cost
          answers[i] = a
          if same then
            call('HINCRBY', key, 'tokens', cost == 1 and '-1' or format('-%d', cost))
          elseif life then
            call('HSET', key, 'tokens', format('%d', a), 'last_refill', format('%d', b), 'limit', text)
          else
            call('HSET', key, 'tokens', format('%d', a), 'last_refill', format('%d', b))
          end
        elseif algorithm == 2 then
          a = a - cost
          answers[i] = a
          if same then
            call('HINCRBY', key, 'level', cost == 1 and '1' or format('%d', cost))
          else
            call('HSET', key, 'level', format('%d', y - a), 'last_leak', format('%d', b), 'leak', text)
          end
        elseif algorithm == 5 then
          local current = answers[2 * count + i] + cost
          answers[2 * count + i] = current
          if same then
            call('HINCRBY', key, 'current', cost == 1 and '1' or format('%d', cost))
          else
            call('HSET', key, 'start', format('%d', b), 'previous', format('%d', a), 'current', format('%d', current), 'window', text)
          end
        elseif algorithm > 0 then
          a = a + cost
          answers[i] = a
          if same then
            call('HINCRBY', key, 'count', cost == 1 and '1' or format('%d', cost))
          else
            call('HSET', key, 'count', format('%d', a), 'start', format('%d', b - y), 'window', text)
          end
        end
        if life then
          call('PEXPIRE', key, format('%d', (life + 1000999) / 1000))
        end
      end
    end
  end
  local shown = 2 * count
  if counters then
    shown = 3 * count
    for i = shown - count + 1, shown do answers[i] = answers[i] or 0 end
  end
  return struct.pack('<d' .. string.rep('d', shown), now, unpack(answers, 1, shown))
until true
