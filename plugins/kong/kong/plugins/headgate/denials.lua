-- Denials by Headgate, until their time is up. They still hold while Headgate cannot answer: otherwise a client that
-- overloads it would be admitted because of that.

-- In a flood of subjects, the variant on Lua tables takes a millisecond for each eviction, and this one microseconds.
local lrucache = require "resty.lrucache.pureffi"

local concat, format, match, sort = table.concat, string.format, string.match, table.sort
local now, sha1_bin = ngx.now, ngx.sha1_bin

local _M = {}

-- Maximum number in a worker. The least recently used are evicted.
local MAX_PER_WORKER = 16384

-- The dictionary that an operator may declare, which all workers of a node share; else a cache of this worker.
local denials = ngx.shared.headgate_denials or assert(lrucache.new(MAX_PER_WORKER))

local function add(parts, value)
  local text = tostring(value)
  -- With lengths, different questions have different texts.
  parts[#parts + 1] = #text .. ":" .. text
end

-- The key of a question to Headgate. A hash, so that its length is fixed and no subject is stored.
function _M.key(conf, subject, attributes)
  local parts = {}
  add(parts, conf.host)
  add(parts, conf.port)
  add(parts, conf.rule_id or conf.scope)
  add(parts, conf.cost)
  if not attributes then
    add(parts, subject)
    return sha1_bin(concat(parts))
  end
  local names = {}
  for name in pairs(attributes) do
    names[#names + 1] = name
  end
  sort(names)
  for _, name in ipairs(names) do
    add(parts, name)
    add(parts, attributes[name])
  end
  return sha1_bin(concat(parts))
end

function _M.remember(key, decision)
  local seconds = decision.retry_after_ms / 1000
  -- One without an end would be kept for ever.
  if seconds > 0 then
    local text = format(
      "%.3f %.0f %.0f %.0f", now() + seconds, decision.limit, decision.remaining, decision.reset_at
    )
    denials:set(key, text, seconds)
  end
end

function _M.forget(key)
  denials:delete(key)
end

-- Returns the denial of this key with the time that is left of it, or nil.
function _M.recall(key)
  local over_at, limit, remaining, reset_at = match(denials:get(key) or "", "^(%S+) (%d+) (%d+) (%d+)$")
  local left = over_at and tonumber(over_at) - now()
  if not left or left <= 0 then
    return nil
  end
  return {
    allowed = false,
    limit = tonumber(limit),
    remaining = tonumber(remaining),
    reset_at = tonumber(reset_at),
    retry_after_ms = left * 1000,
  }
end

return _M
