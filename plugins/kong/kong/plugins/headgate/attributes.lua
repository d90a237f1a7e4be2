-- Attributes of a request, for rules over attributes.

local subject = require "kong.plugins.headgate.subject"

local find, format, gsub, match, sub = string.find, string.format, string.gsub, string.match, string.sub

local _M = {}

-- Maximum length of a value on the server, in bytes, and of the part of a longer one that is kept.
local MAX_BYTES = 1024
local KEPT_BYTES = 960

-- The attribute that is always sent.
local ADDRESS = "address"

-- Attributes that are subjects of rules by scope, whose values must be identifiers.
local IDENTIFIERS = { service = true, user = true, endpoint = true }

local function field(entity, name)
  return entity and entity[name]
end

-- Variables without a name after a dot.
local VARIABLES = {
  ["client_ip"] = function()
    return kong.client.get_forwarded_ip()
  end,
  ["client_network"] = function(conf)
    local network = subject.address(kong.client.get_forwarded_ip(), conf.ipv6_prefix_length)
    return (gsub(network, "^ip:", ""))
  end,
  ["consumer.custom_id"] = function()
    return field(kong.client.get_consumer(), "custom_id")
  end,
  ["consumer.id"] = function()
    return field(kong.client.get_consumer(), "id")
  end,
  ["consumer.username"] = function()
    return field(kong.client.get_consumer(), "username")
  end,
  ["credential.id"] = function()
    return field(kong.client.get_credential(), "id")
  end,
  ["host"] = function()
    return kong.request.get_host()
  end,
  ["method"] = function()
    return kong.request.get_method()
  end,
  ["path"] = function()
    return kong.request.get_path()
  end,
  ["route.id"] = function()
    return field(kong.router.get_route(), "id")
  end,
  ["route.name"] = function()
    return field(kong.router.get_route(), "name")
  end,
  ["scheme"] = function()
    return kong.request.get_scheme()
  end,
  ["service.id"] = function()
    return field(kong.router.get_service(), "id")
  end,
  ["service.name"] = function()
    return field(kong.router.get_service(), "name")
  end,
}

-- Variables with a name after a dot.
local NAMED = {
  header = function(_, name)
    return kong.request.get_header(name)
  end,
  query = function(_, name)
    return kong.request.get_query_arg(name)
  end,
}

-- Returns the finder of a template and its argument; nil for a text.
local function finder(template)
  local variable = match(template, "^%$(.*)$")
  if not variable then
    return nil
  end
  local kind, name = match(variable, "^(%l+)%.([%w_-]+)$")
  if kind and NAMED[kind] then
    return NAMED[kind], name
  end
  return VARIABLES[variable] or false
end

-- Validates a template as Kong's schema does.
function _M.validate(template)
  if finder(template) == false then
    local names = {}
    for name in pairs(VARIABLES) do
      names[#names + 1] = "$" .. name
    end
    table.sort(names)
    return nil, "unknown variable; known: " .. table.concat(names, ", ") .. ", $header.NAME, $query.NAME"
  end
  return true
end

-- The patterns of UTF-8, longest first: each is replaced by a letter, so that the bytes around it do not join.
local SEQUENCES = {
  "\240[\144-\191][\128-\191][\128-\191]",
  "[\241-\243][\128-\191][\128-\191][\128-\191]",
  "\244[\128-\143][\128-\191][\128-\191]",
  "\224[\160-\191][\128-\191]",
  "[\225-\236\238\239][\128-\191][\128-\191]",
  "\237[\128-\159][\128-\191]",
  "[\194-\223][\128-\191]",
}

local function is_utf8(text)
  if not find(text, "[\128-\255]") then
    return true
  end
  for _, sequence in ipairs(SEQUENCES) do
    text = gsub(text, sequence, "x")
  end
  return not find(text, "[\128-\255]")
end

local function encoded(text)
  return (gsub(text, "[\128-\255]", function(one)
    return format("%%%02X", one:byte())
  end))
end

-- Returns a value that the server accepts: one that it would reject must not evade the check. The beginning of a
-- long value is kept, so that prefixes match, and a hash of all of it, so that each is counted by itself.
local function bounded(name, value)
  local text = tostring(value)
  if IDENTIFIERS[name] then
    return subject.named(text)
  end
  if not is_utf8(text) then
    text = encoded(text)
  end
  if #text > MAX_BYTES then
    -- A cut may be within a character.
    local kept = sub(text, 1, KEPT_BYTES)
    while not is_utf8(kept) do
      kept = sub(kept, 1, -2)
    end
    return kept .. "~" .. subject.digest(text)
  end
  return text
end

-- Returns the attributes that the templates of `conf` describe. An attribute without a value is missing.
function _M.of(conf)
  local templates, attributes = conf.attributes, {}
  for name, template in pairs(templates) do
    local find_value, argument = finder(template)
    local value = template
    if find_value then
      value = find_value(conf, argument)
    end
    if value ~= nil and value ~= ngx.null then
      attributes[name] = bounded(name, value)
    end
  end
  if not templates[ADDRESS] then
    attributes[ADDRESS] = bounded(ADDRESS, kong.client.get_forwarded_ip())
  end
  return attributes
end

return _M
