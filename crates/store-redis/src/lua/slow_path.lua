-- Slow path: applies one verb to several keys, all or nothing.
-- KEYS     the keys
-- ARGV[1]  verb: peek, acquire, lease, give_back, reserve, use, commit, cancel, refund, reset; or
--          undo, which returns the units that an acquire took from each key
-- ARGV[2]  lease id, for use and commit followed by a comma and the spent units for each key, with
--          '!' for an overdraft and '=' for a total, or '-'; or a number for each key, comma-separated: for lease, the
--          units to grant and, after a colon, the longest time in microseconds; for give_back, the
--          ends of the grants; for refund, the times at which units were taken, or '-'; for undo,
--          the times of the acquisitions and, after colons, the microsecond and the fraction at
--          which the bucket was full afterwards
-- ARGV[3]  length of the lease in microseconds; then, unless all checks have the mode s, ';' and a
--          letter for each key (a, o and g never deny the others):
--          s  takes with the others or not at all
--          l  takes nothing; its denial denies the others
--          a  takes if it fits and the others do
--          o  takes if it fits, regardless of the others
--          g  takes nothing
-- ARGV[4]  for each key, in binary: the algorithm as a byte (1 token_bucket, 2 leaky_bucket,
--          3 fixed_window, 4 calendar, 5 sliding_window_counter, 6 sliding_window, 7 concurrency); three doubles:
--          the cost, then the limit and the window or, for buckets, the microseconds per token (0
--          if not a whole number) and the burst; and a zero-terminated text that the file of the
--          algorithm describes
-- Returns for each key: 0 (denied on its own), 1 (allowed) or 2 (allowed because its lease exists:
-- nothing was taken), the time of the decision, the leases and grants, for lease the units granted
-- and the end of the grant, and the numbers of the algorithm.
-- Returns only the time if it is in none of the listed calendar periods.

local MAX_PENDING, MAX_ENDS, MAX_SETTLED = 128, 4, 16
local verb, id = ARGV[1], ARGV[2]
local lease, stakes = string.match(ARGV[3], '^(%d*);?(%a*)$')
local time = redis.call('TIME')
local clock = time[1] * 1000000 + time[2]

local function find_lease(s)
  for i, l in ipairs(s.leases) do
    if l.id == id then return i end
  end
end

-- The units for which the lease was settled, if that is remembered.
local function settled_for(s)
  local opening = '!' .. id .. '/'
  for i = #s.done, 1, -1 do
    if string.sub(s.done[i], 1, #opening) == opening then
      return tonumber(string.match(s.done[i], '^%d+', #opening + 1))
    end
  end
end

-- Position of the grants with this end.
local function find_grant(s, ends)
  for i, g in ipairs(s.grants) do
    if g.ends == ends then return i end
  end
end

-- Returns `count` units of a lease, as far as they still count.
local function give_lease(meter, s, l, count)
  if count == 0 then return end
  if meter.give_lease then
    meter.give_lease(s, l, count)
  else
    meter.give(s, count, l.taken)
  end
end

-- Takes `count` units now.
local function take(meter, s, count)
  if count == 0 then return end
  if meter.note_refilled then meter.note_refilled(s) end
  meter.take(s, count)
end

-- Units that can be taken now.
local function available(s, left)
  return math.max(0, left - s.granted)
end

-- Returns the units of leases that have expired at this time.
local function expire_leases(meter, s, at)
  local i = 1
  while s.leases[i] do
    local l = s.leases[i]
    if l.expires <= at then
      table.remove(s.leases, i)
      give_lease(meter, s, l, l.units)
      s.settled = true
    else
      i = i + 1
    end
  end
end

-- Moves the state on to s.now: in the last microsecond of a grant its units are taken, and when a
-- lease expires its units return.
local function settle(meter, s)
  while s.grants[1] and s.grants[1].ends <= s.now do
    local g = table.remove(s.grants, 1)
    local last = g.ends - 1
    if meter.advance then meter.advance(s, last) end
    expire_leases(meter, s, last)
    if meter.note_refilled then meter.note_refilled(s) end
    meter.record(s, g.units, last)
    s.granted = s.granted - g.units
    s.settled = true
  end
  if meter.advance then meter.advance(s, s.now) end
  expire_leases(meter, s, s.now)
  for i = #s.done, 1, -1 do
    if settled_until(s.done[i]) <= s.now then
      table.remove(s.done, i)
      s.settled = true
    end
  end
end

local function permits(meter, s, cost)
  if meter.permits then return meter.permits(s, cost, verb, id) end
  if verb == 'acquire' or verb == 'peek' or verb == 'lease' then return meter.fits(s, cost + s.granted) end
  if verb == 'reserve' then
    s.existed = find_lease(s) ~= nil
    if s.existed then return true end
    return not settled_for(s) and #s.leases < MAX_PENDING and meter.fits(s, cost + s.granted)
  end
  if verb == 'use' or verb == 'cancel' then return find_lease(s) ~= nil end
  if verb == 'commit' then return find_lease(s) ~= nil or s.spent and settled_for(s) == s.spent or false end
  if verb == 'give_back' then
    local i = find_grant(s, s.term)
    return i and s.grants[i].units >= cost or false
  end
  return true
end

-- Grants as much as is available, up to s.term units, for at most s.hold microseconds.
local function grant(meter, s)
  local count = math.min(s.term, meter.left(s) - s.granted)
  if count <= 0 then return end
  -- All instances use the same few ends.
  local step = math.max(1, math.floor(s.hold / 2))
  local ends = s.now - math.fmod(s.now, step) + 2 * step
  if s.finish then ends = math.min(ends, s.finish) end
  local i = find_grant(s, ends)
  if i then
    s.grants[i].units = s.grants[i].units + count
  elseif #s.grants >= MAX_ENDS then
    return
  else
    table.insert(s.grants, { units = count, ends = ends })
    table.sort(s.grants, function(a, b) return a.ends < b.ends end)
  end
  s.granted = s.granted + count
  s.grant = { count, ends }
end

-- Whether the check takes units, given whether all binding checks are permitted.
local function takes(s, all)
  if s.stake == 's' then return all end
  if s.stake == 'a' then return s.permitted and all end
  return s.stake == 'o' and s.permitted
end

-- Charges units to a lease, and makes it hold as many again if they are available.
local function charge(meter, s, count)
  local i = find_lease(s)
  local l = s.leases[i]
  -- What was charged before is not charged again.
  if s.in_total then count = math.max(0, count - l.used) end
  local held = math.min(count, l.units)
  l.units, l.used = l.units - held, math.min(l.used + count, MAX_UNITS)
  -- What has refilled was used first.
  if l.lost >= held then
    l.lost = l.lost - held
  else
    l.lost, l.part = 0, 0
  end
  take(meter, s, math.min(count - held, available(s, meter.room(s))))
  l.expires = s.now + tonumber(lease)
  if l.units >= count then return end
  -- All of them anew, so that they have one time.
  table.remove(s.leases, i)
  give_lease(meter, s, l, l.units)
  l.units, l.taken, l.lost, l.part = math.min(count, available(s, meter.left(s))), s.now, 0, 0
  take(meter, s, l.units)
  s.leases[#s.leases + 1] = l
end

-- Ends a lease for s.spent units.
local function settle_lease(meter, s, l)
  local unused = math.max(0, s.spent - l.used)
  local returned, missing = math.max(0, l.units - unused), math.max(0, unused - l.units)
  give_lease(meter, s, l, returned)
  local taken = math.min(missing, available(s, s.overdraft and meter.room(s) or meter.left(s)))
  take(meter, s, taken)
  if #s.done >= MAX_SETTLED then table.remove(s.done, 1) end
  s.done[#s.done + 1] =
    string.format('!%s/%d/%d/%d/%d', id, s.spent, returned, missing - taken, l.expires)
end

local function perform(meter, s, cost)
  if meter.perform then return meter.perform(s, cost, verb, lease) end
  if verb == 'acquire' then
    take(meter, s, cost)
  elseif verb == 'lease' then
    take(meter, s, cost)
    grant(meter, s)
  elseif verb == 'give_back' then
    local i = find_grant(s, s.term)
    local g = s.grants[i]
    g.units, s.granted = g.units - cost, s.granted - cost
    if g.units == 0 then table.remove(s.grants, i) end
  elseif verb == 'reserve' then
    -- One that is pending already stays as it is.
    if find_lease(s) then return end
    take(meter, s, cost)
    s.leases[#s.leases + 1] = {
      id = id, units = cost, used = 0, taken = s.now, expires = s.now + tonumber(lease), lost = 0, part = 0,
    }
  elseif verb == 'use' then
    charge(meter, s, s.spent or cost)
  elseif verb == 'commit' then
    local i = find_lease(s)
    local l = i and table.remove(s.leases, i)
    if l and s.spent then settle_lease(meter, s, l) end
  elseif verb == 'cancel' then
    local l = table.remove(s.leases, find_lease(s))
    give_lease(meter, s, l, l.units)
  elseif verb == 'refund' then
    meter.give(s, cost, s.term)
  elseif verb == 'undo' then
    meter.give(s, cost, not s.unchanged and s.term or nil)
  end
end

-- A reset also deletes values that no algorithm can read.
if verb == 'reset' then
  for i = 1, #KEYS do
    if not string.find(stakes, '^[lg]', i) then redis.call('DEL', KEYS[i]) end
  end
end

-- Verbs that name a lease or a grant: their limit may come from outside with the name, so it never
-- raises the rate of a bucket, and nothing is saved if there is no such lease or grant.
local by_name = verb == 'use' or verb == 'commit' or verb == 'cancel' or verb == 'give_back'

-- Read all states before the first write, except that expired entries of a log may be deleted: an
-- unreadable state fails the whole call.
local states, next = {}, 1
for i = 1, #KEYS do
  local algorithm, cost, limit, window, text
  algorithm, cost, limit, window, text, next = struct.unpack('<Bddds', ARGV[4], next)
  local meter = meters[algorithm]
  local s = meter.load(KEYS[i], { limit = limit, window = window, text = text }, clock)
  -- The caller computes calendar periods, but the clock is that of Redis: return the time for a
  -- retry.
  if s.outside then return s.now end
  -- Nor does a refund apply it: other refunds have to know at which rate units have refilled.
  if s.changed and (verb == 'refund' or by_name and s.rate > s.flow) then meter.keep_rate(s) end
  s.meter, s.cost, s.clock = meter, cost, clock
  s.stake = stakes == '' and 's' or string.sub(stakes, i, i)
  states[i] = s
end

if verb == 'undo' or verb == 'lease' or verb == 'give_back' or verb == 'refund' then
  local i = 0
  for term, hold, fraction in string.gmatch(id, '([%d-]+):?(%d*):?(%d*)') do
    i = i + 1
    local s = states[i]
    s.term, s.hold = tonumber(term), tonumber(hold)
    if verb == 'undo' and s.meter.is_unchanged then
      s.unchanged = s.meter.is_unchanged(s, s.hold, tonumber(fraction))
    end
  end
elseif verb == 'use' or verb == 'commit' then
  local i = 0
  for spent, overdraft, total in string.gmatch(id, ',([%d-]+)(!?)(=?)') do
    i = i + 1
    local s = states[i]
    s.spent, s.overdraft, s.in_total = tonumber(spent), overdraft ~= '', total ~= ''
  end
  id = string.match(id, '^%x+')
end

local all = true
for _, s in ipairs(states) do
  settle(s.meter, s)
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
  if acts and (taken or not by_name and (s.changed or s.settled)) or s.must_save then meter.save(s) end
  local answer = { permitted and (s.existed and 2 or 1) or 0, s.now, (write_pending(s)) }
  if verb == 'lease' then
    answer[4], answer[5] = unpack(s.grant or { 0, 0 })
  end
  for _, number in ipairs(meter.reply(s, cost, permitted)) do
    answer[#answer + 1] = number
  end
  answers[i] = answer
end
return answers
