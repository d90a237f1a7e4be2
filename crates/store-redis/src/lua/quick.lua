-- The short way, which almost every call takes: acquire and peek of states that
-- have no leases and no fractions, under limits that have not changed. Nothing is
-- written until all of that is sure; where it is not, the long way decides.
-- What is dear here: functions, which would be made anew on every call; tables that grow; numbers that become
-- texts; tonumber, which reads a text twice; every word of a command and every step of this loop. What most keys
-- do not need is in a table of its own, and a text that the next key needs too is kept.
-- Answers a text of numbers: the time of the decision; then the first number of every key, then the second of
-- every key, which is below zero if it would not be admitted by itself, then, if there are counters, a third of
-- every key, which only counters have.

repeat
  local verb, stakes, checks = ARGV[1], ARGV[3], ARGV[4]
  if verb ~= 'acquire' and verb ~= 'peek' then break end

  local keys, call, unpack_check = KEYS, redis.call, struct.unpack
  local count, staked = #keys, stakes ~= ''
  local time = call('TIME')
  local now = time[1] * 1000000 + time[2]
  -- Room for two numbers of ten keys from the start, so that it does not grow with each.
  local answers = { nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil }
  -- How a key is written down: {algorithm, cost, whether only one number changes, the time to live unless that is
  -- long enough as it is, window or burst, text}. Of a token bucket that was there, where all share, that gives one
  -- token and lives long enough, just what is new: 'tokens', 'both' tokens and time, or nil, which is the time alone.
  local plan = { nil, nil, nil, nil, nil, nil, nil, nil, nil, nil }
  local sure, all, counters, at = true, true, false, 1
  for i = 1, count do
    local algorithm, cost, x, y, text, next = unpack_check('<Bddds', checks, at)
    local special, key, fits, a, b, left, same, life = staked, keys[i]
    at = next

    if algorithm <= 2 then -- token_bucket, leaky_bucket: x is the time of a token if that is a whole number, y the burst
      if x == 0 then sure = false break end
      -- HVALS is cheaper than HMGET. The order is that in which they were written, unless Redis has made a table of
      -- the hash, as it does for a lease. Then the third is not this limit, or more tokens than a bucket holds give
      -- away that they are a time. What the other kind of bucket left here has another third, too.
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
        -- One assignment after the other: several at once go through copies.
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
        -- Time goes in steps of half of what it takes to fill. The time to live is set when last_refill
        -- enters another step, to a second more than it takes to fill. Is that past the time when
        -- this one is full?
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
      -- Only within a period that has begun here: its end, and the time to live, are known.
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
            -- It takes nothing.
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
