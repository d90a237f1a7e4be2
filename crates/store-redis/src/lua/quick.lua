-- The short way, which almost every call takes: acquire and peek of states that
-- have no leases and no fractions, under limits that have not changed. Nothing is
-- written until all of that is sure; where it is not, the long way decides.
-- What is dear here: functions, which would be made anew on every call; tables that grow; numbers that become
-- texts; tonumber, which reads a text twice. What only grows is added to, and a text that the next key needs
-- too is kept.
-- Answers a text of numbers: the time of the decision; then for every key 1 or 0 (would it be admitted by
-- itself), and three of the algorithm's own.

repeat
  local verb, stakes, checks = ARGV[1], ARGV[3], ARGV[4]
  if verb ~= 'acquire' and verb ~= 'peek' then break end

  local keys, call, unpack_check = KEYS, redis.call, struct.unpack
  local time = call('TIME')
  local now = time[1] * 1000000 + time[2]
  -- answers: what is answered, four of each key
  -- plan: how it is written down, six of each key: its algorithm, cost and burst, the limit's text, whether only
  --   one number changes, and the time to live unless that is long enough as it is
  -- A table made of so many bytes, whatever they are, has the length that it will need.
  local answers = { string.byte(checks, 1, 4 * #keys) }
  local plan = { string.byte(checks, 1, 6 * #keys) }
  local sure, all, at = true, true, 1
  for i = 1, #keys do
    local algorithm, cost, limit, window, burst, text, next = unpack_check('<Bdddds', checks, at)
    local key, fits, a, b, c, same, life = keys[i], false, 0, 0, 0, false, false

    if algorithm <= 2 then -- token_bucket, leaky_bucket
      local h
      if algorithm == 1 then
        h = call('HMGET', key, 'tokens', 'last_refill', 'limit')
      else
        h = call('HMGET', key, 'level', 'last_leak', 'limit')
      end
      local interval = window / limit
      if interval % 1 ~= 0 then sure = false break end
      a, b, life = burst, now, burst * interval
      if h[1] then
        local since = h[2] + 0
        if h[3] ~= text or since > now then sure = false break end
        a = h[1] + 0
        if algorithm == 2 then a = burst - a end
        local elapsed = now - since
        if elapsed < interval and a < burst then
          b, same = since, true
        else
          local rest = elapsed % interval
          a, b = a + (elapsed - rest) / interval, now - rest
          if a >= burst then a, b = burst, now end
        end
        -- Time goes in steps of half of what it takes to fill. The time to live is set when last_refill
        -- enters another step, to a second more than it takes to fill. Is that past the time when
        -- this one is full?
        local into = b % (life / 2)
        if since >= b - into and into + (burst - a + cost) * interval <= life + 1000000 then life = false end
      end
      fits = a >= cost

    elseif algorithm == 3 then -- fixed_window
      local h = call('HMGET', key, 'count', 'start', 'window')
      local begun = (h[2] or 0) + 0
      if h[1] and h[3] ~= text or begun > now then sure = false break end
      c = now - now % window
      b = c + window
      if begun == c then a, same = h[1] + 0, true else life = b - now end
      fits = cost <= limit - a

    elseif algorithm == 4 then -- calendar
      -- Only within a period that has begun here: its end, and the time to live, are known.
      local h = call('HMGET', key, 'count', 'start', 'finish', 'leases')
      if not h[1] or h[4] or now - h[2] < 0 then sure = false break end
      a, b, same = h[1] + 0, h[3] + 0, true
      if now >= b then sure = false break end
      fits = cost <= limit - a

    elseif algorithm == 5 then -- sliding_window_counter
      local h = call('HMGET', key, 'start', 'previous', 'current', 'window')
      local begun = (h[1] or 0) + 0
      a = now - now % window
      if begun == a then
        b, c, same = h[2] + 0, h[3] + 0, true
      else
        if begun + window == a then b = h[3] + 0 end
        life = a + 2 * window - now
      end
      local counted = b * (a + window - now)
      if h[1] and h[4] ~= text or begun > now or counted >= 9007199254740992 then sure = false break end
      fits = counted <= (limit - c - cost) * window

    else
      sure = false
      break
    end
    if not fits and (stakes == '' or string.find(stakes, '^[sl]', i + 1)) then all = false end
    at = next
    local n, m = 4 * i, 6 * i
    answers[n - 3], answers[n - 2], answers[n - 1], answers[n] = fits and 1 or 0, a, b, c
    plan[m - 5], plan[m - 4], plan[m - 3], plan[m - 2], plan[m - 1], plan[m] = algorithm, cost, burst, text, same, life
  end

  if not sure then break end
  if verb == 'acquire' and (all or stakes ~= '') then
    local format, now_text, tokens_shown, tokens_text = string.format
    for i = 1, #keys do
      local key, n, m = keys[i], 4 * i, 6 * i
      local algorithm, cost, same, life = plan[m - 5], plan[m - 4], plan[m - 1], plan[m]
      if stakes ~= '' then
        local stake, fits = string.sub(stakes, i + 1, i + 1), answers[n - 3] == 1
        if stake == 'l' or stake == 'g' or stake == 's' and not all or stake == 'a' and not (fits and all) or stake == 'o' and not fits then
          algorithm, life = 0, false
        end
      end
      if algorithm == 0 then
        -- takes nothing
      elseif algorithm == 1 then
        local tokens, since = answers[n - 2] - cost, answers[n - 1]
        answers[n - 2] = tokens
        if same then
          call('HINCRBY', key, 'tokens', cost == 1 and '-1' or format('-%d', cost))
        else
          if tokens ~= tokens_shown then
            tokens_shown, tokens_text = tokens, format('%d', tokens)
          end
          if since == now then
            now_text = now_text or format('%d', now)
            since = now_text
          else
            since = format('%d', since)
          end
          if life then
            call('HSET', key, 'tokens', tokens_text, 'last_refill', since, 'limit', plan[m - 2])
          else
            call('HSET', key, 'tokens', tokens_text, 'last_refill', since)
          end
        end
      elseif algorithm == 2 then
        local tokens = answers[n - 2] - cost
        answers[n - 2] = tokens
        if same then
          call('HINCRBY', key, 'level', cost == 1 and '1' or format('%d', cost))
        else
          call('HSET', key, 'level', format('%d', plan[m - 3] - tokens), 'last_leak', format('%d', answers[n - 1]), 'limit', plan[m - 2])
        end
      elseif algorithm == 5 then
        answers[n] = answers[n] + cost
        if same then
          call('HINCRBY', key, 'current', cost == 1 and '1' or format('%d', cost))
        else
          call('HSET', key, 'start', format('%d', answers[n - 2]), 'previous', format('%d', answers[n - 1]), 'current', format('%d', cost), 'window', plan[m - 2])
        end
      else
        answers[n - 2] = answers[n - 2] + cost
        if same then
          call('HINCRBY', key, 'count', cost == 1 and '1' or format('%d', cost))
        else
          call('HSET', key, 'count', format('%d', cost), 'start', format('%d', answers[n]), 'window', plan[m - 2])
        end
      end
      if life then
        call('PEXPIRE', key, format('%d', (life + 1000999) / 1000))
      end
    end
  end
  return struct.pack('<d' .. string.rep('d', #answers), now, unpack(answers))
until true
