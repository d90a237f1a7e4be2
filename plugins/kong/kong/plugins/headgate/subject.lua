-- Subject of a request.

local find, format, gmatch, gsub, match = string.find, string.format, string.gmatch, string.gsub, string.match
local sha1_bin = ngx.sha1_bin

local _M = {}

-- Maximum length of a subject on the server, in bytes.
local MAX_BYTES = 512

local function hex(bytes)
  return (gsub(bytes, ".", function(one)
    return format("%02x", one:byte())
  end))
end

-- The SHA-1 of a text, in hexadecimal digits.
function _M.digest(text)
  return hex(sha1_bin(text))
end

local function hashed(text)
  return "sha1:" .. _M.digest(text)
end

-- Replaces a value that the server would reject by its hash, so that it is counted.
local function clean(text)
  if text == "" or #text > MAX_BYTES or find(text, "[^\32-\122|~]") then
    return hashed(text)
  end
  return text
end

-- The subject of a value that was found in a request. One that looks like a subject of ours is replaced by its hash:
-- a header must not be counted as the address of another client.
function _M.named(value)
  if find(value, "^ip:") or find(value, "^sha1:") then
    return hashed(value)
  end
  return clean(value)
end

-- The eight groups of an IPv6 address, or nil if it is not one.
local function network(address)
  local head, tail = match(address, "^([%x:]*)::([%x:]*)$")
  local groups = {}
  for group in gmatch(head or address, "[^:]+") do
    groups[#groups + 1] = tonumber(group, 16)
  end
  if head then
    local _, after = gsub(tail, "%x+", "")
    for _ = #groups + after + 1, 8 do
      groups[#groups + 1] = 0
    end
    for group in gmatch(tail, "[^:]+") do
      groups[#groups + 1] = tonumber(group, 16)
    end
  end
  return #groups == 8 and groups or nil
end

-- The text that an address is counted by: an IPv4 address, or the network of an IPv6 address with a prefix of 48 to
-- 64 bits, because a client can use any address in it. The same text as in Headgate with the same length.
function _M.address(address, prefix_length)
  address = gsub(address, "%%.*$", "")
  local v4 = match(address, "^::[fF][fF][fF][fF]:(%d+%.%d+%.%d+%.%d+)$") or match(address, "^[%d.]+$")
  if v4 then
    return "ip:" .. v4
  end
  local groups = network(address)
  if not groups then
    return clean("ip:" .. address)
  end
  groups[4] = groups[4] - groups[4] % 2 ^ (64 - prefix_length)
  local last = 4
  while last > 0 and groups[last] == 0 do
    last = last - 1
  end
  local parts = {}
  for place = 1, last do
    parts[place] = format("%x", groups[place])
  end
  return "ip:" .. table.concat(parts, ":") .. "::/" .. format("%d", prefix_length)
end

local function name_of(entity)
  return entity and (entity.name or entity.id)
end

local function credential()
  local found = kong.client.get_credential()
  return found and (found.id or found.username)
end

-- Finders by `limit_by`.
local FINDERS = {
  consumer = function()
    local found = kong.client.get_consumer()
    return found and (found.username or found.custom_id or found.id) or credential()
  end,
  credential = credential,
  header = function(conf)
    return kong.request.get_header(conf.header_name)
  end,
  service = function()
    return name_of(kong.router.get_service())
  end,
  route = function()
    return name_of(kong.router.get_route())
  end,
  ip = function() end,
}

-- The subject of the request. Without one, the client address.
function _M.of(conf)
  local found = FINDERS[conf.limit_by](conf)
  if found and found ~= "" then
    return _M.named(tostring(found))
  end
  return _M.address(kong.client.get_forwarded_ip(), conf.ipv6_prefix_length)
end

return _M
