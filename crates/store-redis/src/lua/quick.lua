-- The short way, which almost every call takes: acquire and peek of states that
-- have no leases and no fractions, under limits that have not changed. Nothing is
-- written until all of that is sure; where it is not, the long way decides.
-- What is dear here: functions, which would be made anew on every call; tables that grow; numbers that become
-- texts; tonumber, which reads a text twice; every word. What only grows is added to, and a text that the next
-- key needs too is kept.
-- Answers a text of numbers: the time of the decision; then for every key two of the algorithm's own, the second
-- of which is below zero if it would not be admitted by itself, and of a counter a third.

repeat
  local verb, stakes, checks = ARGV[1], ARGV[3], ARGV[4]
  if verb ~= 'acquire' and verb ~= 'peek' then break end

  local keys, call, unpack_check = KEYS, redis.call, struct.unpack
  local time = call('TIME')
  local now = time[1] * 1000000 + time[2]
  -- answers: what is answered
  -- plan: how it is written down, five of each key: its algorithm and cost, where its check stands, whether only
  --   one number changes, and the time to live unless that is long enough as it is
  -- A table made of so many bytes, whatever they are, has the length that it will need.
  local answers = { string.byte(checks, 1, 2 * #keys) }
  local plan = { string.byte(checks, 1, 5 * #keys) }
  local sure, all, at, n, m = true, true, 1, 0, 0
  for i = 1, #keys do
    local algorithm, cost, x, y, text, next = unpack_check('<Bddds', checks, at)
    local key, fits, a, b, c, same, life = keys[i]

    if algorithm <= 2 then -- token_bucket, leaky_bucket: x is the time of a token if that is a whole number, y the burst
      if x == 0 then sure = false break end
      local h
      if algorithm == 1 then
        h = call('HMGET', key, 'tokens', 'last_refill', 'limit')
      else
        h = call('HMGET', key, 'level', 'last_leak', 'limit')
      end
      a = h[1]
      if not a then
        a, b, life = y, now, y * x
      else
        local elapsed = now - h[2]
        if h[3] ~= text or elapsed < 0 then sure = false break end
        if algorithm == 1 then a = a + 0 else a = y - a end
        if elapsed < x and a < y then
          b, same = now - elapsed, true
        else
          local rest = elapsed % x
          a, b = a + (elapsed - rest) / x, now - rest
          if a >= y then a, b = y, now end
        end
        -- Time goes in steps of half of what it takes to fill. The time to live is set when last_refill
        -- enters another step, to a second more than it takes to fill. Is that past the time when
        -- this one is full?
        local fill = y * x
        local into = b % (fill / 2)
        if now - elapsed < b - into or into + (y - a + cost) * x > fill + 1000000 then life = fill end
      end
      fits = a >= cost

    elseif algorithm == 3 then -- fixed_window: x is the limit, y the window
      local h = call('HMGET', key, 'count', 'start', 'window')
      local begun = (h[2] or 0) + 0
      if h[1] and h[3] ~= text or begun > now then sure = false break end
      local start = now - now % y
      a, b = 0, start + y
      if begun == start then a, same = h[1] + 0, true else life = b - now end
      fits = cost <= x - a

    elseif algorithm == 4 then -- calendar: x is the limit
      -- Only within a period that has begun here: its end, and the time to live, are known.
      local h = call('HMGET', key, 'count', 'start', 'finish', 'leases')
      if not h[1] or h[4] or now - h[2] < 0 then sure = false break end
      a, b, same = h[1] + 0, h[3] + 0, true
      if now >= b then sure = false break end
      fits = cost <= x - a

    elseif algorithm == 5 then -- sliding_window_counter: x is the limit, y the window
      local h = call('HMGET', key, 'start', 'previous', 'current', 'window')
      local begun = (h[1] or 0) + 0
      a, b, c = 0, now - now % y, 0
      if begun == b then
        a, c, same = h[2] + 0, h[3] + 0, true
      else
        if begun + y == b then a = h[3] + 0 end
        life = b + 2 * y - now
      end
      local counted = a * (b + y - now)
      if h[1] and h[4] ~= text or begun > now or counted >= 9007199254740992 then sure = false break end
      fits = counted <= (x - c - cost) * y

    else
      sure = false
      break
    end
    if not fits then
      b = -b
      if stakes == '' or string.find(stakes, '^[sl]', i + 1) then all = false end
    end
    answers[n + 1], answers[n + 2] = a, b
    n = n + 2
    if c then
      n = n + 1
      answers[n] = c
    end
    plan[m + 1], plan[m + 2], plan[m + 3], plan[m + 4], plan[m + 5] = algorithm, cost, at, same, life
    at, m = next, m + 5
  end

  if not sure then break end
  if verb == 'acquire' and (all or stakes ~= '') then
    local format, now_text, tokens_shown, tokens_text = string.format
    n, m = 0, 0
    for i = 1, #keys do
      local key, algorithm, cost, same, life = keys[i], plan[m + 1], plan[m + 2], plan[m + 4], plan[m + 5]
      if stakes ~= '' then
        local stake, fits = string.sub(stakes, i + 1, i + 1), answers[n + 2] > 0
        if not (stake == 's' and all or stake == 'a' and fits and all or stake == 'o' and fits) then
          -- It takes nothing.
          if algorithm == 5 then n = n + 1 end
          algorithm, life = 0, false
        end
      end
      if algorithm == 1 then
        local tokens = answers[n + 1] - cost
        answers[n + 1] = tokens
        if same then
          call('HINCRBY', key, 'tokens', cost == 1 and '-1' or format('-%d', cost))
        else
          if tokens ~= tokens_shown then
            tokens_shown, tokens_text = tokens, format('%d', tokens)
          end
          local since = answers[n + 2]
          if since == now then
            now_text = now_text or format('%d', now)
            since = now_text
          else
            since = format('%d', since)
          end
          if life then
            local _, _, _, _, text = unpack_check('<Bddds', checks, plan[m + 3])
            call('HSET', key, 'tokens', tokens_text, 'last_refill', since, 'limit', text)
          else
            call('HSET', key, 'tokens', tokens_text, 'last_refill', since)
          end
        end
      elseif algorithm == 2 then
        local tokens = answers[n + 1] - cost
        answers[n + 1] = tokens
        if same then
          call('HINCRBY', key, 'level', cost == 1 and '1' or format('%d', cost))
        else
          local _, _, _, burst, text = unpack_check('<Bddds', checks, plan[m + 3])
          call('HSET', key, 'level', format('%d', burst - tokens), 'last_leak', format('%d', answers[n + 2]), 'limit', text)
        end
      elseif algorithm == 5 then
        local current = answers[n + 3] + cost
        answers[n + 3] = current
        if same then
          call('HINCRBY', key, 'current', cost == 1 and '1' or format('%d', cost))
        else
          local _, _, _, _, text = unpack_check('<Bddds', checks, plan[m + 3])
          call('HSET', key, 'start', format('%d', answers[n + 2]), 'previous', format('%d', answers[n + 1]), 'current', format('%d', current), 'window', text)
        end
        n = n + 1
      elseif algorithm > 0 then
        local count = answers[n + 1] + cost
        answers[n + 1] = count
        if same then
          call('HINCRBY', key, 'count', cost == 1 and '1' or format('%d', cost))
        else
          local _, _, _, window, text = unpack_check('<Bddds', checks, plan[m + 3])
          call('HSET', key, 'count', format('%d', count), 'start', format('%d', answers[n + 2] - window), 'window', text)
        end
      end
      if life then
        call('PEXPIRE', key, format('%d', (life + 1000999) / 1000))
      end
      n, m = n + 2, m + 5
    end
  end
  return struct.pack('<d' .. string.rep('d', #answers), now, unpack(answers))
until true
