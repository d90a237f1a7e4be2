-- Asks Headgate whether a request may go on, before it is forwarded.

local client = require "kong.plugins.headgate.client"
local subject = require "kong.plugins.headgate.subject"

local ceil, format, max = math.ceil, string.format, math.max

local Headgate = {
  -- After whoever finds out who the consumer is, and just before Kong's own rate limiting.
  PRIORITY = 911,
  VERSION = "0.1.0",
}

local function number(value)
  return format("%.0f", value)
end

local function headers_of(answer)
  local headers = {
    ["X-RateLimit-Limit"] = number(answer.limit),
    ["X-RateLimit-Remaining"] = number(answer.remaining),
    ["X-RateLimit-Reset"] = number(answer.reset_at),
  }
  if not answer.allowed then
    headers["Retry-After"] = number(max(1, ceil(answer.retry_after_ms / 1000)))
  end
  return headers
end

function Headgate:access(conf)
  local answer, err = client.check(conf, subject.of(conf), kong.request.get_header("x-request-id"))
  if not answer then
    kong.log.err("cannot ask Headgate: ", err)
    if conf.fault_tolerant then
      return
    end
    return kong.response.exit(503, { message = "The rate limit cannot be checked" })
  end

  local headers = not conf.hide_client_headers and headers_of(answer) or nil
  if not answer.allowed then
    return kong.response.exit(429, { message = conf.error_message }, headers)
  end
  kong.ctx.plugin.headers = headers
end

-- Here they take the place of what the upstream service may say of limits of its own.
function Headgate:header_filter()
  local headers = kong.ctx.plugin.headers
  if headers then
    kong.response.set_headers(headers)
  end
end

return Headgate
