-- What every algorithm needs. Numbers are doubles: whole and exact up to 2^53.
--
-- An algorithm is a table of functions on a state `s`, which it makes itself:
--   load(key, args, clock)  the state now; s.now never precedes its last change
--   fits(s, cost)           whether cost can be taken
--   take(s, cost)           takes it
--   give(s, cost, taken)    gives it back; `taken` is when it was taken, or nil
--   save(s)                 writes state and leases, with a time to live
--   reply(s, cost, fits)    numbers from which the engine derives its answer

local meters = {}

-- floor(a * b / m) and a * b mod m, also where a * b is beyond 2^53.
-- Needs a < 2^48, m < 2^48 and a quotient below 2^53.
local function muldiv(a, b, m)
  local product = a * b
  if product < 9007199254740992 then
    local r = math.fmod(product, m)
    return (product - r) / m, r
  end
  -- Long multiplication and division at once, by the hexadecimal digits of b.
  local q, r, place = 0, 0, 1
  while place * 16 <= b do place = place * 16 end
  while place >= 1 do
    local digit = math.floor(b / place)
    b = b - digit * place
    local x = r * 16 + a * digit
    r = math.fmod(x, m)
    q = q * 16 + (x - r) / m
    place = place / 16
  end
  return q, r
end

-- Leases as text: id:cost:taken:expires, separated by semicolons.
local function read_leases(text)
  local leases = {}
  if text then
    for id, cost, taken, expires in string.gmatch(text, '(%x+):(%d+):(%d+):(%d+)') do
      leases[#leases + 1] = { id = id, cost = tonumber(cost), taken = tonumber(taken), expires = tonumber(expires) }
    end
  end
  return leases
end

local function write_leases(leases)
  local texts = {}
  for i, l in ipairs(leases) do
    texts[i] = string.format('%s:%.0f:%.0f:%.0f', l.id, l.cost, l.taken, l.expires)
  end
  return table.concat(texts, ';')
end

-- Lets the key live `micros` longer than s.now, and as long as its leases, and a second more. Redis counts from
-- its clock, which may have been set back behind s.now.
local function expire(s, micros)
  for _, l in ipairs(s.leases) do
    micros = math.max(micros, l.expires - s.now)
  end
  micros = micros + s.now - s.clock
  -- Only a limit that was lowered a lot can owe for years.
  redis.call('PEXPIRE', s.key, math.ceil(math.min(micros, 140737488355328) / 1000) + 1000)
end

-- The window, and the leases after it: how windows keep them, so that one look tells whether the window is still
-- what it was and there are no leases.
local function write_window(s)
  local window = string.format('%.0f', s.window)
  if #s.leases == 0 then return window end
  return window .. ';' .. write_leases(s.leases)
end

local function read_window(text)
  return read_leases(text and string.match(text, ';(.*)$'))
end
