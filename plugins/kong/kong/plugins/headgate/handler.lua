-- Checks the rate limit of a request before it is forwarded.

local attributes = require "kong.plugins.headgate.attributes"
local client = require "kong.plugins.headgate.client"
local denials = require "kong.plugins.headgate.denials"
local subject = require "kong.plugins.headgate.subject"

local ceil, format, max = math.ceil, string.format, math.max

local Headgate = {
  -- After authentication, and just before Kong's own rate limiting.
  PRIORITY = 911,
  VERSION = "0.1.0",
}

local function number(value)
  return format("%.0f", value)
end

-- The subject of a request, or its attributes.
local function asked_about(conf)
  if conf.attributes and next(conf.attributes) then
    return nil, attributes.of(conf)
  end
  return subject.of(conf)
end

local function headers_of(decision)
  -- No rule matched.
  if decision.limit == 0 then
    return nil
  end
  local headers = {
    ["X-RateLimit-Limit"] = number(decision.limit),
    ["X-RateLimit-Remaining"] = number(decision.remaining),
    ["X-RateLimit-Reset"] = number(decision.reset_at),
  }
  if not decision.allowed then
    headers["Retry-After"] = number(max(1, ceil(decision.retry_after_ms / 1000)))
  end
  return headers
end

local function client_headers(conf, decision)
  return not conf.hide_client_headers and headers_of(decision) or nil
end

local function deny(conf, decision)
  return kong.response.exit(429, { message = conf.error_message }, client_headers(conf, decision))
end

-- Answers a request that Headgate did not decide.
local function decide_without(conf, key)
  local denial = denials.recall(key)
  if denial then
    return deny(conf, denial)
  end
  if not conf.fault_tolerant then
    return kong.response.exit(503, { message = "The rate limit cannot be checked" })
  end
end

function Headgate:access(conf)
  local found, facts = asked_about(conf)
  local key = denials.key(conf, found, facts)
  local decision, err = client.check(conf, found, facts, kong.request.get_header("x-request-id"))
  if not decision then
    kong.log.err("failed to check the rate limit: ", err)
    return decide_without(conf, key)
  end
  if not decision.allowed then
    denials.remember(key, decision)
    return deny(conf, decision)
  end
  denials.forget(key)
  kong.ctx.plugin.headers = client_headers(conf, decision)
end

-- Overrides rate limit headers of the upstream service.
function Headgate:header_filter()
  local headers = kong.ctx.plugin.headers
  if headers then
    kong.response.set_headers(headers)
  end
end

return Headgate
