-- Shared by all algorithms. Numbers are doubles: whole, and exact up to 2^53.
--
-- An algorithm is a table of functions on a state `s`:
--   load(key, args, clock)  returns the stored state; s.now is never before its last change
--   advance(s, to)          moves the state on to this time; nil if load has moved it on to s.now
--   fits(s, cost)           whether cost can be taken
--   left(s)                 the largest cost that can be taken
--   room(s)                 the same with an overdraft
--   take(s, cost)           takes cost, whether it fits or not
--   record(s, cost, at)     takes cost as of `at`, an earlier time
--   give(s, cost, taken)    returns cost; `taken` is the time when it was taken, or nil
--   keep_rate(s)            buckets only: keeps the rate of the last change, if the limit has another
--   note_refilled(s)        buckets only: notes what has refilled of the leases, before a take
--   give_lease(s, l, cost)  buckets only: returns cost of a lease, less what has refilled
--   is_unchanged(s, at, f)  buckets only: whether nothing was taken since an acquisition after
--                           which the bucket was to be full at that time; before advance
--   permits(s, cost, verb, id), perform(s, cost, verb, lease)
--                           concurrency only: its own verbs, instead of those of slow_path.lua
--   save(s)                 writes state and leases, with a TTL
--   reply(s, cost, fits)    numbers from which the engine computes its outcome

local meters = {}

-- The largest debt, as a multiple of the limit, and the largest number of units.
local MAX_DEBT, MAX_UNITS = 15, 9007199254740992

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

-- Reads leases, settled leases and grants into s.leases, s.done and s.grants. As text, separated by
-- semicolons:
--   id:units:taken:expires           a lease; then :used:lost:part, unless these are 0: the tokens
--                                    of a bucket that have refilled, and a fraction in 1/window
--   +units:ends                      a grant, in the order of their ends
--   !id/spent/returned/owed/until    a settled lease
--   ~                                the summary (write_summary), which is not needed here
-- Settled leases stay texts: they are many, and all but one are only copied.
local function read_pending(s, text)
  s.leases, s.grants, s.granted, s.done = {}, {}, 0, {}
  if not text or text == '' then return end
  local byte, find, match, sub = string.byte, string.find, string.match, string.sub
  local at = 1
  repeat
    local next = find(text, ';', at, true)
    local entry = sub(text, at, next and next - 1)
    local kind = byte(entry)
    if kind == 33 then -- !
      s.done[#s.done + 1] = entry
    elseif kind == 43 then -- +
      local units, ends = match(entry, '^%+(%d+):(%d+)$')
      s.grants[#s.grants + 1] = { units = units + 0, ends = ends + 0 }
      s.granted = s.granted + units
    elseif kind ~= 126 then -- ~
      local id, units, taken, expires, more = match(entry, '^(%x+):(%d+):(%d+):(%d+)([:%d]*)$')
      local used, lost, part = 0, 0, 0
      if more ~= '' then used, lost, part = match(more, '^:(%d+):(%d+):(%d+)$') end
      s.leases[#s.leases + 1] = {
        id = id, units = units + 0, taken = taken + 0, expires = expires + 0, used = used + 0, lost = lost + 0,
        part = part + 0,
      }
    end
    at = next and next + 1
  until not at
end

-- The time until which a settled lease is remembered. Each text is parsed once.
local untils = {}
local function settled_until(text)
  local till = untils[text]
  if not till then
    till = string.match(text, '^!%x+/%d+/%d+/%d+/(%d+)$') + 0
    untils[text] = till
  end
  return till
end

local function has_pending(s)
  return #s.leases > 0 or #s.grants > 0 or #s.done > 0
end

-- What is pending, and the length of the leases in it. Written once: nothing changes after it.
local function write_pending(s)
  if s.written then return s.written, s.leases_length end
  local format, texts = string.format, {}
  for i, l in ipairs(s.leases) do
    texts[i] = format('%s:%d:%d:%d', l.id, l.units, l.taken, l.expires)
    if l.used > 0 or l.lost > 0 or l.part > 0 then
      texts[i] = format('%s:%d:%d:%d', texts[i], l.used, l.lost, l.part)
    end
  end
  local leases = table.concat(texts, ';')
  for _, g in ipairs(s.grants) do
    texts[#texts + 1] = format('+%d:%d', g.units, g.ends)
  end
  for _, settled in ipairs(s.done) do
    texts[#texts + 1] = settled
  end
  s.written, s.leases_length = table.concat(texts, ';'), #leases
  return s.written, s.leases_length
end

-- What is pending, as it is stored: after a summary for reservation_path.lua, if there are no grants
-- and nothing of the leases has refilled: ~first end of a lease or a settled one,time until which the
-- key lives at least (expire),units of the leases,number of leases,number of settled ones,length of
-- the leases with a semicolon before each.
local function write_summary(s)
  local pending, length = write_pending(s)
  if pending == '' or #s.grants > 0 then return pending end
  if length > 0 then length = length + 1 end
  local ends, lives_until, units = MAX_UNITS, 0, 0
  for _, l in ipairs(s.leases) do
    if l.lost > 0 or l.part > 0 then return pending end
    ends, lives_until = math.min(ends, l.expires), math.max(lives_until, l.expires)
    units = units + l.units
  end
  for _, settled in ipairs(s.done) do
    local till = settled_until(settled)
    ends, lives_until = math.min(ends, till), math.max(lives_until, till)
  end
  local summary = string.format('~%d,%d,%d,%d,%d,%d', ends, lives_until, units, #s.leases, #s.done, length)
  return summary .. ';' .. pending
end

-- Sets the TTL of the key to `micros` after s.now or, if there are grants, after the last of them
-- ends; or to the end of its last lease, also of a settled one; plus one second. Redis counts from its clock, which may
-- have been set back behind s.now.
local function expire(s, micros)
  local last = s.grants[#s.grants]
  if last then micros = micros + last.ends - s.now end
  for _, l in ipairs(s.leases) do
    micros = math.max(micros, l.expires - s.now)
  end
  for _, settled in ipairs(s.done) do
    micros = math.max(micros, settled_until(settled) - s.now)
  end
  micros = micros + s.now - s.clock
  -- The cap matters only after a limit was lowered drastically: its debt may take years.
  redis.call('PEXPIRE', s.key, math.ceil(math.min(micros, 140737488355328) / 1000) + 1000)
end

-- The window and what is pending in one field, so that one comparison shows that the window is
-- unchanged and nothing is pending.
local function write_window(s)
  local window = string.format('%.0f', s.window)
  if not has_pending(s) then return window end
  return window .. ';' .. write_summary(s)
end

local function read_window(s, text)
  read_pending(s, text and string.match(text, ';(.*)$'))
end
