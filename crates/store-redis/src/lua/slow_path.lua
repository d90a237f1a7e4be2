-- Slow path: applies one verb to several keys, all or nothing.
-- KEYS     the keys
-- ARGV[1]  verb: peek, acquire, reserve, commit, cancel, refund, reset; or undo, which returns the
--          units that an acquire took from each key
-- ARGV[2]  lease id; for undo, the times of the acquisitions, comma-separated
-- ARGV[3]  length of the lease in microseconds; then, unless all checks have the mode s, ';' and a
--          letter for each key (a, o and g never deny the others):
--          s  takes with the others or not at all
--          l  takes nothing; its denial denies the others
--          a  takes if it fits and the others do
--          o  takes if it fits, regardless of the others
--          g  takes nothing
-- ARGV[4]  for each key, in binary: the algorithm as a byte (1 token_bucket, 2 leaky_bucket,
--          3 fixed_window, 4 calendar, 5 sliding_window_counter, 6 sliding_window); three doubles:
--          the cost, then the limit and the window or, for buckets, the microseconds per token (0
--          if not a whole number) and the burst; and a zero-terminated text that the file of the
--          algorithm describes
-- Returns for each key: 1 or 0 (allowed on its own), the time of the decision, the leases, and the
-- numbers of the algorithm. Returns only the time if it is in none of the listed calendar periods.

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

-- Returns the units of expired leases.
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

-- Whether the check takes units, given whether all binding checks are permitted.
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

-- A reset also deletes values that no algorithm can read.
if verb == 'reset' then
  for i = 1, #KEYS do
    if not string.find(stakes, '^[lg]', i) then redis.call('DEL', KEYS[i]) end
  end
end

-- Read all states before the first write: an unreadable state fails the whole call.
local states, next = {}, 1
for i = 1, #KEYS do
  local algorithm, cost, limit, window, text
  algorithm, cost, limit, window, text, next = struct.unpack('<Bddds', ARGV[4], next)
  local meter = meters[algorithm]
  local s = meter.load(KEYS[i], { limit = limit, window = window, text = text }, clock)
  -- The caller computes calendar periods, but the clock is that of Redis: return the time for a
  -- retry.
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
  -- A denial is saved only if the state has changed.
  if acts and (taken or s.changed or s.settled) or s.must_save then meter.save(s) end
  local answer = { permitted and 1 or 0, s.now, write_leases(s.leases) }
  for _, number in ipairs(meter.reply(s, cost, permitted)) do
    answer[#answer + 1] = number
  end
  answers[i] = answer
end
return answers
