-- Validates a configuration against a schema as Kong does, as far as this schema needs. An unknown attribute in the
-- schema is an error, as in Kong.

local _M = {}

local KNOWN = {
  between = true, custom_validator = true, default = true, encrypted = true, keys = true, len_max = true, match = true,
  one_of = true, referenceable = true, required = true, type = true, uuid = true, values = true,
}

local UUID = "^%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x$"

local TYPES = {
  boolean = function(value)
    return type(value) == "boolean"
  end,
  map = function(value)
    return type(value) == "table"
  end,
  integer = function(value)
    return type(value) == "number" and value % 1 == 0
  end,
  string = function(value)
    return type(value) == "string" and value ~= ""
  end,
}

local function contains(list, value)
  for _, one in ipairs(list) do
    if one == value then
      return true
    end
  end
  return false
end

local function length_of(value)
  if type(value) == "string" then
    return #value
  end
  local length = 0
  for _ in pairs(value) do
    length = length + 1
  end
  return length
end

local problem_of

local function map_problem(field, map)
  for key, value in pairs(map) do
    local problem = problem_of(field.keys, key) or problem_of(field.values, value)
    if problem then
      return key .. ": " .. problem
    end
  end
end

function problem_of(field, value)
  for word in pairs(field) do
    assert(KNOWN[word], word)
  end
  if not TYPES[field.type](value) then
    return "expected " .. field.type
  end
  local between = field.between
  if between and (value < between[1] or value > between[2]) then
    return "value should be between " .. between[1] .. " and " .. between[2]
  end
  if field.one_of and not contains(field.one_of, value) then
    return "expected one of: " .. table.concat(field.one_of, ", ")
  end
  if field.match and not value:match(field.match) or field.uuid and not value:match(UUID) then
    return "invalid value"
  end
  if field.len_max and length_of(value) > field.len_max then
    return "length must be at most " .. field.len_max
  end
  if field.custom_validator then
    local valid, problem = field.custom_validator(value)
    if not valid then
      return problem
    end
  end
  if field.type == "map" then
    return map_problem(field, value)
  end
end

local function config_fields(schema)
  for _, field in ipairs(schema.fields) do
    if field.config then
      return field.config.fields
    end
  end
end

local function own(name)
  return name:match("^config%.(.+)$")
end

-- The checks of several fields together.
local ENTITY_CHECKS = {
  conditional = function(rule, config)
    local asked, needed = own(rule.if_field), own(rule.then_field)
    if config[asked] == rule.if_match.eq and rule.then_match.required and config[needed] == nil then
      return needed .. ": required field missing"
    end
  end,
  mutually_exclusive = function(names, config)
    local one, other = own(names[1]), own(names[2])
    if config[one] ~= nil and config[other] ~= nil then
      return "only one or none of these fields must be set: " .. one .. ", " .. other
    end
  end,
}

local function entity_problem(schema, config)
  for _, check in ipairs(schema.entity_checks) do
    local kind, rule = next(check)
    local problem = ENTITY_CHECKS[kind](rule, config)
    if problem then
      return problem
    end
  end
end

-- Returns the configuration with defaults, or the errors.
function _M.validate(schema, given)
  local config, known = {}, {}
  for _, entry in ipairs(config_fields(schema)) do
    local name, field = next(entry)
    known[name] = true
    local value = given[name]
    if value == nil then
      value = field.default
    end
    local problem = value == nil and field.required and "required field missing"
      or value ~= nil and problem_of(field, value)
    if problem then
      return nil, name .. ": " .. problem
    end
    config[name] = value
  end
  for name in pairs(given) do
    if not known[name] then
      return nil, name .. ": unknown field"
    end
  end
  local problem = entity_problem(schema, config)
  if problem then
    return nil, problem
  end
  return config
end

return _M
