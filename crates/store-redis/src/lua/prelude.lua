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
-- The summary in front of them (write_summary) is not needed here.
local function read_pending(s, text)
  s.leases, s.grants, s.granted, s.done = {}, {}, 0, {}
  if not text then return end
  for id, units, taken, expires, more in string.gmatch(text, '(%x+):(%d+):(%d+):(%d+)([:%d]*)') do
    local used, lost, part = string.match(more, '^:(%d+):(%d+):(%d+)$')
    s.leases[#s.leases + 1] = {
      id = id, units = tonumber(units), taken = tonumber(taken), expires = tonumber(expires),
      used = tonumber(used or 0), lost = tonumber(lost or 0), part = tonumber(part or 0),
    }
  end
  for id, spent, returned, owed, ends in string.gmatch(text, '!(%x+)/(%d+)/(%d+)/(%d+)/(%d+)') do
    s.done[#s.done + 1] = {
      id = id, spent = tonumber(spent), returned = tonumber(returned), owed = tonumber(owed), ends = tonumber(ends),
    }
  end
  for count, ends in string.gmatch(text, '%+(%d+):(%d+)') do
    s.grants[#s.grants + 1] = { units = tonumber(count), ends = tonumber(ends) }
    s.granted = s.granted + tonumber(count)
  end
end

local function has_pending(s)
  return #s.leases > 0 or #s.grants > 0 or #s.done > 0
end

local function write_leases(s)
  local texts = {}
  for i, l in ipairs(s.leases) do
    texts[i] = string.format('%s:%.0f:%.0f:%.0f', l.id, l.units, l.taken, l.expires)
    if l.used > 0 or l.lost > 0 or l.part > 0 then
      texts[i] = string.format('%s:%.0f:%.0f:%.0f', texts[i], l.used, l.lost, l.part)
    end
  end
  return texts
end

local function write_pending(s)
  local texts = write_leases(s)
  for _, g in ipairs(s.grants) do
    texts[#texts + 1] = string.format('+%.0f:%.0f', g.units, g.ends)
  end
  for _, d in ipairs(s.done) do
    texts[#texts + 1] = string.format('!%s/%.0f/%.0f/%.0f/%.0f', d.id, d.spent, d.returned, d.owed, d.ends)
  end
  return table.concat(texts, ';')
end

-- What is pending, as it is stored: after a summary for reservation_path.lua, if there are no grants
-- and nothing of the leases has refilled: ~first end of a lease or a settled one,time until which the
-- key lives at least (expire),units of the leases,number of leases,number of settled ones,length of
-- the leases with a semicolon before each.
local function write_summary(s)
  local pending = write_pending(s)
  if pending == '' or #s.grants > 0 then return pending end
  local leases = table.concat(write_leases(s), ';')
  local length = leases == '' and 0 or #leases + 1
  local ends, lives_until, units = MAX_UNITS, 0, 0
  for _, l in ipairs(s.leases) do
    if l.lost > 0 or l.part > 0 then return pending end
    ends, lives_until = math.min(ends, l.expires), math.max(lives_until, l.expires)
    units = units + l.units
  end
  for _, d in ipairs(s.done) do
    ends, lives_until = math.min(ends, d.ends), math.max(lives_until, d.ends)
  end
  local summary = string.format('~%.0f,%.0f,%.0f,%d,%d,%d', ends, lives_until, units, #s.leases, #s.done, length)
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
  for _, d in ipairs(s.done) do
    micros = math.max(micros, d.ends - s.now)
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
