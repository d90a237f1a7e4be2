-- Shared by all algorithms. Numbers are doubles: whole, and exact up to 2^53.
--
-- An algorithm is a table of functions on a state `s`:
--   load(key, args, clock)  returns the current state; s.now is never before its last change
--   fits(s, cost)           whether cost can be taken
--   take(s, cost)           takes cost
--   give(s, cost, taken)    returns cost; `taken` is the time when it was taken, or nil
--   save(s)                 writes state and leases, with a TTL
--   reply(s, cost, fits)    numbers from which the engine computes its outcome

local meters = {}

-- floor(a * b / m) and a * b mod m, also if a * b exceeds 2^53.
-- Needs a < 2^48, m < 2^48 and a quotient below 2^53.
local function muldiv(a, b, m)
  local product = a * b
  if product < 9007199254740992 then
    local r = math.fmod(product, m)
    return (product - r) / m, r
  end
  -- Long multiplication and division in one pass over the hexadecimal digits of b.
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

-- Sets the TTL of the key to `micros` after s.now, or to the end of its last lease, plus one
-- second. Redis counts from its clock, which may have been set back behind s.now.
local function expire(s, micros)
  for _, l in ipairs(s.leases) do
    micros = math.max(micros, l.expires - s.now)
  end
  micros = micros + s.now - s.clock
  -- The cap matters only after a limit was lowered drastically: its debt may take years.
  redis.call('PEXPIRE', s.key, math.ceil(math.min(micros, 140737488355328) / 1000) + 1000)
end

-- The window and its leases in one field, so that one comparison shows that the window is unchanged
-- and has no leases.
local function write_window(s)
  local window = string.format('%.0f', s.window)
  if #s.leases == 0 then return window end
  return window .. ';' .. write_leases(s.leases)
end

local function read_window(text)
  return read_leases(text and string.match(text, ';(.*)$'))
end
