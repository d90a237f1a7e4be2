-- Protocol Buffers encoding of the messages of CheckRateLimit.

local byte, char, floor, sub = string.byte, string.char, math.floor, string.sub

local _M = {}

-- Wire types: varint, 8 bytes, length-prefixed bytes, 4 bytes.
local VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

-- 64 bits, seven per byte.
local MAX_VARINT_BYTES = 10

-- Fields of the response that are used, by number.
local RESPONSE = {
  [1] = { name = "allowed", kind = VARINT },
  [2] = { name = "remaining", kind = VARINT },
  [3] = { name = "reset_at", kind = VARINT },
  [4] = { name = "reason", kind = BYTES },
  [5] = { name = "limit", kind = VARINT },
  [6] = { name = "retry_after_ms", kind = VARINT },
}

local function varint(number)
  local bytes = {}
  while number >= 128 do
    bytes[#bytes + 1] = char(number % 128 + 128)
    number = floor(number / 128)
  end
  bytes[#bytes + 1] = char(number)
  return table.concat(bytes)
end

local function text_field(number, text)
  return char(number * 8 + BYTES) .. varint(#text) .. text
end

-- Encodes a CheckRateLimitRequest of a subject, or of attributes.
function _M.encode(rule, subject, cost, attributes)
  local fields = {}
  if attributes then
    for name, text in pairs(attributes) do
      -- An entry of the map: its key, and a message with the text.
      fields[#fields + 1] = text_field(6, text_field(1, name) .. text_field(2, text_field(1, text)))
    end
  else
    fields = { text_field(1, rule), text_field(2, subject) }
  end
  local request = table.concat(fields)
  if cost and cost > 1 then
    request = request .. char(3 * 8 + VARINT) .. varint(cost)
  end
  return request
end

-- Returns the number at `from`, and the position after it. A double has 53 bits, which is enough for any limit.
local function read_varint(bytes, from)
  local number, scale = 0, 1
  for place = from, from + MAX_VARINT_BYTES - 1 do
    local part = byte(bytes, place)
    if not part then
      return nil
    end
    number = number + part % 128 * scale
    if part < 128 then
      return number, place + 1
    end
    scale = scale * 128
  end
  return nil
end

-- Returns the value of a field, and the position after it.
local function read_value(bytes, kind, from)
  if kind == VARINT then
    return read_varint(bytes, from)
  end
  local length = kind == FIXED64 and 8 or kind == FIXED32 and 4
  if kind == BYTES then
    length, from = read_varint(bytes, from)
  end
  if not length or from + length - 1 > #bytes then
    return nil
  end
  return sub(bytes, from, from + length - 1), from + length
end

-- Decodes a CheckRateLimitResponse. Missing fields have their defaults; unknown fields are skipped.
function _M.decode(bytes)
  local decision = { allowed = 0, remaining = 0, reset_at = 0, reason = "", limit = 0, retry_after_ms = 0 }
  local from = 1
  while from <= #bytes do
    local tag, value
    tag, from = read_varint(bytes, from)
    if not tag then
      return nil, "invalid response message"
    end
    local kind, field = tag % 8, RESPONSE[floor(tag / 8)]
    value, from = read_value(bytes, kind, from)
    if not value then
      return nil, "invalid response message"
    end
    if field and field.kind == kind then
      decision[field.name] = value
    end
  end
  decision.allowed = decision.allowed ~= 0
  return decision
end

return _M
