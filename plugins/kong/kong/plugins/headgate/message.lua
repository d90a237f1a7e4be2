-- The two messages of CheckRateLimit, as Protocol Buffers write them.

local byte, char, floor, sub = string.byte, string.char, math.floor, string.sub

local _M = {}

-- How a field is written: a number, eight bytes, bytes with their length, or four bytes.
local VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

-- 64 bits, seven in a byte.
local MAX_VARINT_BYTES = 10

-- The fields of an answer that matter here, by their numbers.
local ANSWER = {
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

-- A CheckRateLimitRequest.
function _M.question(rule, subject, cost)
  local question = text_field(1, rule) .. text_field(2, subject)
  if cost and cost > 1 then
    question = question .. char(3 * 8 + VARINT) .. varint(cost)
  end
  return question
end

-- The number at `from`, and where the next byte is. A double holds 53 bits of it, which is more than any limit has.
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

-- What a field holds, and where the next one is.
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

-- What a CheckRateLimitResponse says. Fields that are not there have their defaults; unknown ones are passed over.
function _M.answer(bytes)
  local answer = { allowed = 0, remaining = 0, reset_at = 0, reason = "", limit = 0, retry_after_ms = 0 }
  local from = 1
  while from <= #bytes do
    local tag, value
    tag, from = read_varint(bytes, from)
    if not tag then
      return nil, "the answer cannot be read"
    end
    local kind, field = tag % 8, ANSWER[floor(tag / 8)]
    value, from = read_value(bytes, kind, from)
    if not value then
      return nil, "the answer cannot be read"
    end
    if field and field.kind == kind then
      answer[field.name] = value
    end
  end
  answer.allowed = answer.allowed ~= 0
  return answer
end

return _M
