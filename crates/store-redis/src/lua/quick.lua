-- The short way, which almost every call takes: acquire and peek of states that
-- have no leases and no fractions, under limits that have not changed. Nothing is
-- written until all of that is sure; where it is not, the long way decides.
-- It keeps to a few tables and no functions: those would be made anew on every call. Numbers that
-- become texts are dear: what only grows is added to, by a text that the caller sent.
-- Answers, for every key, five numbers: 1 or 0 (would it be admitted by itself), the time of the
-- decision, and three of the algorithm's own.

repeat
  local keys, args, call = KEYS, ARGV, redis.call
  local verb = args[1]
  if verb ~= 'acquire' and verb ~= 'peek' then break end

  local time = call('TIME')
  local clock = time[1] * 1000000 + time[2]
  -- lives: keys whose time to live is long enough as it is
  -- same: keys of which only one number changes
  local sure, all, answers, lives, same = true, true, {}, {}, {}
  -- ';' and a letter for every key where not all share: see driver.lua
  local stakes = args[3]
  for i = 1, #keys do
    local at = 5 * i - 2
    local key, algorithm, cost = keys[i], args[at + 1], tonumber(args[at + 2])
    local limit, window = tonumber(args[at + 3]), tonumber(args[at + 4])
    local now, fits, a, b, c = clock, false, 0, 0, 0

    if algorithm == 'token_bucket' or algorithm == 'leaky_bucket' then
      local burst, interval = tonumber(args[at + 5]), window / limit
      local h, policy
      if algorithm == 'token_bucket' then
        h = call('HMGET', key, 'tokens', 'last_refill', 'limit')
        policy = args[at + 3] .. '/' .. args[at + 5]
      else
        h = call('HMGET', key, 'level', 'last_leak', 'limit')
        policy = args[at + 3]
      end
      sure = interval == math.floor(interval) and (not h[1] or h[3] == policy)
      if not sure then break end
      local tokens, since = burst, clock
      if h[1] then
        tokens, since = tonumber(h[1]), tonumber(h[2])
        if algorithm == 'leaky_bucket' then tokens = burst - tokens end
        if since > now then now = since end
        local whole = math.floor((now - since) / interval)
        same[i] = whole == 0 and tokens < burst
        tokens, since = tokens + whole, since + whole * interval
        if tokens >= burst then tokens, since = burst, now end
      end
      fits = tokens >= cost
      -- The time to live is set when last_refill enters another half second, to a second more
      -- than it takes to fill: as long as that is less than a second ago, it is long enough.
      lives[i] = h[1] and interval <= 500000 and math.floor(since / 500000) == math.floor(h[2] / 500000)
      a, b = tokens, since

    elseif algorithm == 'fixed_window' then
      local h = call('HMGET', key, 'count', 'start', 'leases')
      sure = not h[3]
      if not sure then break end
      local begun = tonumber(h[2] or 0)
      if begun > now then now = begun end
      local start = now - math.fmod(now, window)
      if begun == start then a, same[i], lives[i] = tonumber(h[1]), true, true end
      fits = a + cost <= limit
      b = start + window

    elseif algorithm == 'calendar' then
      -- Only within a period that has begun here: its end, and the time to live, are known.
      local h = call('HMGET', key, 'count', 'start', 'finish', 'leases')
      sure = h[1] and not h[4]
      if not sure then break end
      if tonumber(h[2]) > now then now = tonumber(h[2]) end
      a, b = tonumber(h[1]), tonumber(h[3])
      sure = now < b
      if not sure then break end
      same[i], lives[i] = true, true
      fits = a + cost <= limit

    elseif algorithm == 'sliding_window_counter' then
      local h = call('HMGET', key, 'start', 'previous', 'current', 'leases')
      local begun = tonumber(h[1] or 0)
      if begun > now then now = begun end
      a = now - math.fmod(now, window)
      if begun == a then
        b, c, same[i], lives[i] = tonumber(h[2]), tonumber(h[3]), true, true
      elseif begun + window == a then
        b = tonumber(h[3])
      end
      local counted = b * (a + window - now)
      sure = not h[4] and counted < 9007199254740992
      if not sure then break end
      fits = counted <= (limit - c - cost) * window

    else
      sure = false
      break
    end
    local n = 5 * i
    answers[n - 4], answers[n - 3], answers[n - 2], answers[n - 1], answers[n] = fits and 1 or 0, now, a, b, c
    if not fits and (stakes == '' or string.find(stakes, '^[sl]', i + 1)) then all = false end
  end

  if not sure then break end
  if verb == 'peek' or stakes == '' and not all then return answers end
  for i = 1, #keys do
    local at, n = 5 * i - 2, 5 * i
    local key, algorithm, units = keys[i], args[at + 1], args[at + 2]
    local cost, life = tonumber(units), tonumber(args[at + 4])
    if stakes ~= '' then
      local stake, fits = string.sub(stakes, i + 1, i + 1), answers[n - 4] == 1
      if stake == 'l' or stake == 'g' or stake == 's' and not all or stake == 'a' and not (fits and all) or stake == 'o' and not fits then
        algorithm, lives[i] = '', true
      end
    end
    if algorithm == '' then
      -- takes nothing
    elseif algorithm == 'fixed_window' or algorithm == 'calendar' then
      local count = answers[n - 2] + cost
      answers[n - 2] = count
      if same[i] then
        call('HINCRBY', key, 'count', units)
      else
        call('HSET', key, 'count', units, 'start', answers[n - 1] - life)
        life = answers[n - 1] - answers[n - 3]
      end
    elseif algorithm == 'sliding_window_counter' then
      answers[n] = answers[n] + cost
      if same[i] then
        call('HINCRBY', key, 'current', units)
      else
        call('HSET', key, 'start', answers[n - 2], 'previous', answers[n - 1], 'current', units)
        life = answers[n - 2] + 2 * life - answers[n - 3]
      end
    else
      local tokens, burst = answers[n - 2] - cost, args[at + 5]
      answers[n - 2] = tokens
      life = burst * life / args[at + 3]
      if algorithm == 'leaky_bucket' then
        if same[i] then
          call('HINCRBY', key, 'level', units)
        else
          call('HSET', key, 'level', burst - tokens, 'last_leak', answers[n - 1], 'limit', args[at + 3])
        end
      elseif same[i] then
        call('HINCRBY', key, 'tokens', '-' .. units)
      elseif lives[i] then
        call('HSET', key, 'tokens', tokens, 'last_refill', answers[n - 1])
      else
        call('HSET', key, 'tokens', tokens, 'last_refill', answers[n - 1], 'limit', args[at + 3] .. '/' .. burst)
      end
    end
    if not lives[i] then
      call('PEXPIRE', key, math.ceil(life / 1000) + 1000)
    end
  end
  return answers
until true
