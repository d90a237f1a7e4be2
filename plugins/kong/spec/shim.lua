-- The part of Kong's plugin development kit that the plugin uses, on plain nginx with its Lua module. Headers of the
-- test define the consumer.

local typedefs = require "typedefs"

package.preload["kong.db.schema.typedefs"] = function()
  return typedefs
end

local schema = require "kong.plugins.headgate.schema"
local validator = require "validator"

local _M = {}

local function json(text)
  return (text:gsub('[%c"\\]', function(one)
    return ("\\u%04x"):format(one:byte())
  end))
end

local function said_by(header, field)
  return function()
    local value = ngx.req.get_headers()[header]
    return value and { [field] = value }
  end
end

kong = {
  client = {
    get_consumer = said_by("x-test-consumer", "username"),
    get_credential = said_by("x-test-credential", "id"),
    get_forwarded_ip = function()
      return ngx.req.get_headers()["x-test-address"] or ngx.var.remote_addr
    end,
  },
  ctx = setmetatable({}, {
    __index = function()
      ngx.ctx.plugin = ngx.ctx.plugin or {}
      return ngx.ctx.plugin
    end,
  }),
  log = {
    err = function(...)
      ngx.log(ngx.ERR, "[headgate] ", ...)
    end,
  },
  request = {
    get_header = function(name)
      local value = ngx.req.get_headers()[name]
      return type(value) == "table" and value[1] or value
    end,
    get_host = function()
      return ngx.var.host
    end,
    get_method = function()
      return ngx.req.get_method()
    end,
    get_path = function()
      return ngx.var.uri
    end,
    get_query_arg = function(name)
      local value = ngx.req.get_uri_args()[name]
      return type(value) == "table" and value[1] or value
    end,
    get_scheme = function()
      return ngx.var.scheme
    end,
  },
  response = {
    exit = function(status, body, headers)
      ngx.status = status
      ngx.header["Content-Type"] = "application/json; charset=utf-8"
      kong.response.set_headers(headers or {})
      ngx.print('{"message":"' .. json(body.message) .. '"}')
      return ngx.exit(status)
    end,
    set_headers = function(headers)
      for name, value in pairs(headers) do
        ngx.header[name] = value
      end
    end,
  },
  router = {
    get_route = said_by("x-test-route", "name"),
    get_service = said_by("x-test-service", "id"),
  },
}

local handler = require "kong.plugins.headgate.handler"
local conf

-- Loads a configuration of the plugin as Kong does.
function _M.configure(given)
  conf = assert(validator.validate(schema, given))
end

function _M.access()
  return handler:access(conf)
end

function _M.header_filter()
  return handler:header_filter(conf)
end

-- Validates the configuration in the body as Kong does.
function _M.judge()
  ngx.req.read_body()
  local given = assert(loadstring("return " .. ngx.req.get_body_data()))()
  local taken, problem = validator.validate(schema, given)
  ngx.print(taken and "ok" or problem)
end

return _M
