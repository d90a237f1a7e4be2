-- The short way, which almost every call takes: acquire and peek of states that
-- have no leases and no fractions, under limits that have not changed. Nothing is
-- written until all of that is sure; where it is not, the long way decides.
-- It keeps to a few tables and no functions: those would be made anew on every call.

repeat
  local verb = ARGV[1]
  if verb ~= 'acquire' and verb ~= 'peek' then break end

  local time = redis.call('TIME')
  local clock = time[1] * 1000000 + time[2]
  -- lives: keys whose time to live is long enough as it is
  local sure, all, answers, lives = true, true, {}, {}
  -- ';' and a letter for every key where not all share: see driver.lua
  local stakes = ARGV[3]
  for i = 1, #KEYS do
    local at = 5 * i - 2
    local key, algorithm, cost = KEYS[i], ARGV[at + 1], tonumber(ARGV[at + 2])
    local limit, window = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
    local fits = false

    if algorithm == 'token_bucket' or algorithm == 'leaky_bucket' then
      local burst, interval = tonumber(ARGV[at + 5]), window / limit
      local h, policy
      if algorithm == 'token_bucket' then
        h = redis.call('HMGET', key, 'tokens', 'last_refill', 'limit')
        policy = ARGV[at + 3] .. '/' .. ARGV[at + 5]
      else
        h = redis.call('HMGET', key, 'level', 'last_leak', 'limit')
        policy = ARGV[at + 3]
      end
      sure = interval == math.floor(interval) and (not h[1] or h[3] == policy)
      if not sure then break end
      local tokens, since, now = burst, clock, clock
      if h[1] then
        tokens, since = tonumber(h[1]), tonumber(h[2])
        if algorithm == 'leaky_bucket' then tokens = burst - tokens end
        if since > now then now = since end
        local whole = math.floor((now - since) / interval)
        tokens, since = tokens + whole, since + whole * interval
        if tokens >= burst then tokens, since = burst, now end
      end
      fits = tokens >= cost
      -- The time to live is set when last_refill enters another half second, to a second more
      -- than it takes to fill: as long as that is less than a second ago, it is long enough.
      lives[i] = h[1] and interval <= 500000 and math.floor(since / 500000) == math.floor(h[2] / 500000)
      answers[i] = { fits and 1 or 0, now, '', tokens, 0, limit, since }

    elseif algorithm == 'fixed_window' then
      local h = redis.call('HMGET', key, 'count', 'start', 'leases')
      sure = not h[3]
      if not sure then break end
      local begun, now, count = tonumber(h[2] or 0), clock, 0
      if begun > now then now = begun end
      local start = now - math.fmod(now, window)
      if begun == start then count = tonumber(h[1]) end
      lives[i] = begun == start
      fits = count + cost <= limit
      answers[i] = { fits and 1 or 0, now, '', count, start + window }

    elseif algorithm == 'calendar' then
      -- Only within a period that has begun here: its end, and the time to live, are known.
      local h = redis.call('HMGET', key, 'count', 'start', 'finish', 'leases')
      local now = clock
      sure = h[1] and not h[4]
      if not sure then break end
      if tonumber(h[2]) > now then now = tonumber(h[2]) end
      local count, finish = tonumber(h[1]), tonumber(h[3])
      sure = now < finish
      if not sure then break end
      lives[i] = true
      fits = count + cost <= limit
      answers[i] = { fits and 1 or 0, now, '', count, finish }

    elseif algorithm == 'sliding_window_counter' then
      local h = redis.call('HMGET', key, 'start', 'previous', 'current', 'leases')
      local begun, now, previous, current = tonumber(h[1] or 0), clock, 0, 0
      if begun > now then now = begun end
      local start = now - math.fmod(now, window)
      if begun == start then
        previous, current = tonumber(h[2]), tonumber(h[3])
      elseif begun + window == start then
        previous = tonumber(h[3])
      end
      local counted = previous * (start + window - now)
      sure = not h[4] and counted < 9007199254740992
      if not sure then break end
      lives[i] = begun == start
      fits = counted <= (limit - current - cost) * window
      answers[i] = { fits and 1 or 0, now, '', start, previous, current }

    else
      sure = false
      break
    end
    if not fits and (stakes == '' or string.find(stakes, '^[sl]', i + 1)) then all = false end
  end

  if not sure then break end
  if verb == 'peek' or stakes == '' and not all then return answers end
  for i = 1, #KEYS do
    local at = 5 * i - 2
    local key, algorithm, cost, answer = KEYS[i], ARGV[at + 1], tonumber(ARGV[at + 2]), answers[i]
    local life = tonumber(ARGV[at + 4])
    if stakes ~= '' then
      local stake, fits = string.sub(stakes, i + 1, i + 1), answer[1] == 1
      if stake == 'l' or stake == 'g' or stake == 's' and not all or stake == 'a' and not (fits and all) or stake == 'o' and not fits then
        algorithm, lives[i] = '', true
      end
    end
    if algorithm == '' then
      -- takes nothing
    elseif algorithm == 'fixed_window' then
      answer[4] = answer[4] + cost
      redis.call('HSET', key, 'count', answer[4], 'start', answer[5] - life)
      life = answer[5] - answer[2]
    elseif algorithm == 'calendar' then
      answer[4] = answer[4] + cost
      redis.call('HSET', key, 'count', answer[4])
    elseif algorithm == 'sliding_window_counter' then
      answer[6] = answer[6] + cost
      redis.call('HSET', key, 'start', answer[4], 'previous', answer[5], 'current', answer[6])
      life = answer[4] + 2 * life - answer[2]
    else
      answer[4] = answer[4] - cost
      local burst = ARGV[at + 5]
      life = burst * life / ARGV[at + 3]
      if algorithm == 'leaky_bucket' then
        redis.call('HSET', key, 'level', burst - answer[4], 'last_leak', answer[7], 'limit', ARGV[at + 3])
      elseif lives[i] then
        redis.call('HSET', key, 'tokens', answer[4], 'last_refill', answer[7])
      else
        redis.call('HSET', key, 'tokens', answer[4], 'last_refill', answer[7], 'limit', ARGV[at + 3] .. '/' .. burst)
      end
    end
    if not lives[i] then
      redis.call('PEXPIRE', key, math.ceil(life / 1000) + 1000)
    end
  end
  return answers
until true
