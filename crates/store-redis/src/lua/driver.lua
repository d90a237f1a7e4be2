-- Does one verb to several keys, all or nothing, in one go.
-- KEYS     the keys
-- ARGV[1]  verb: peek, acquire, reserve, commit, cancel, refund, reset; or undo, which gives back what an
--          acquisition took of every key
-- ARGV[2]  lease id; to undo, when it was taken, for every key, with commas
-- ARGV[3]  lease in microseconds; then, where not all checks share, ';' and a letter for every key:
--          s  takes with the others, or none does      l  is only asked; its refusal stops the others
--          a  takes if it fits and the others do       o  takes if it fits, whatever the others say
--          g  is only asked                            (a, o and g stop nobody)
-- ARGV[4]  for every key, in binary: a byte for the algorithm (1 token_bucket, 2 leaky_bucket, 3 fixed_window,
--          4 calendar, 5 sliding_window_counter, 6 sliding_window), three doubles (cost; limit and window, of
--          buckets the time of a token, or 0 if that is no whole number, and the burst), and a text, which the
--          algorithm explains and which ends with a zero
-- Answers, for every key: 1 or 0 (would it be admitted by itself), the time of
-- the decision, its leases, and the algorithm's own numbers. Or just the time,
-- when that is in none of the calendar periods listed.

local MAX_PENDING = 128
local verb, id = ARGV[1], ARGV[2]
local lease, stakes = string.match(ARGV[3], '^(%d*);?(%a*)$')
local time = redis.call('TIME')
local clock = time[1] * 1000000 + time[2]

local function find_lease(s)
  for i, l in ipairs(s.leases) do
    if l.id == id then return i end
  end
end

-- Gives back what expired leases hold.
local function settle(meter, s)
  for i = #s.leases, 1, -1 do
    local l = s.leases[i]
    if l.expires <= s.now then
      table.remove(s.leases, i)
      meter.give(s, l.cost, l.taken)
      s.settled = true
    end
  end
end

local function permits(meter, s, cost)
  if verb == 'acquire' or verb == 'peek' then return meter.fits(s, cost) end
  if verb == 'reserve' then return #s.leases < MAX_PENDING and meter.fits(s, cost) end
  if verb == 'commit' or verb == 'cancel' then return find_lease(s) ~= nil end
  return true
end

-- Whether it takes, once it is known whether all that bind are permitted.
local function takes(s, all)
  if s.stake == 's' then return all end
  if s.stake == 'a' then return s.permitted and all end
  return s.stake == 'o' and s.permitted
end

local function perform(meter, s, cost)
  if verb == 'acquire' then
    meter.take(s, cost)
  elseif verb == 'reserve' then
    meter.take(s, cost)
    s.leases[#s.leases + 1] = { id = id, cost = cost, taken = s.now, expires = s.now + tonumber(lease) }
  elseif verb == 'commit' then
    table.remove(s.leases, find_lease(s))
  elseif verb == 'cancel' then
    local l = table.remove(s.leases, find_lease(s))
    meter.give(s, l.cost, l.taken)
  elseif verb == 'refund' then
    meter.give(s, cost)
  elseif verb == 'undo' then
    meter.give(s, cost, s.taken)
  end
end

-- A reset also clears away what no algorithm can read.
if verb == 'reset' then
  for i = 1, #KEYS do
    if not string.find(stakes, '^[lg]', i) then redis.call('DEL', KEYS[i]) end
  end
end

-- All are read before anything is written: a state that cannot be read stops the whole.
local states, next = {}, 1
for i = 1, #KEYS do
  local algorithm, cost, limit, window, text
  algorithm, cost, limit, window, text, next = struct.unpack('<Bddds', ARGV[4], next)
  local meter = meters[algorithm]
  local s = meter.load(KEYS[i], { limit = limit, window = window, text = text }, clock)
  -- Only the caller knows calendars, but only this clock counts: tell it the time, to be asked again.
  if s.outside then return s.now end
  s.meter, s.cost, s.clock = meter, cost, clock
  s.stake = stakes == '' and 's' or string.sub(stakes, i, i)
  states[i] = s
end

if verb == 'undo' then
  local i = 0
  for taken in string.gmatch(id, '%d+') do
    i = i + 1
    states[i].taken = tonumber(taken)
  end
end

local all = true
for _, s in ipairs(states) do
  if #s.leases > 0 then settle(s.meter, s) end
  s.permitted = permits(s.meter, s, s.cost)
  if not s.permitted and (s.stake == 's' or s.stake == 'l') then all = false end
end

local answers = {}
for i, s in ipairs(states) do
  local meter, cost, permitted = s.meter, s.cost, s.permitted
  local acts = verb ~= 'peek' and verb ~= 'reset' and s.stake ~= 'l' and s.stake ~= 'g'
  local taken = acts and takes(s, all)
  if taken then perform(meter, s, cost) end
  -- A refusal is written down only where it changed something all the same.
  if acts and (taken or s.changed or s.settled) or s.must_save then meter.save(s) end
  local answer = { permitted and 1 or 0, s.now, write_leases(s.leases) }
  for _, number in ipairs(meter.reply(s, cost, permitted)) do
    answer[#answer + 1] = number
  end
  answers[i] = answer
end
return answers
