-- Client of `CheckRateLimit` over gRPC-Web, which works over HTTP/1.1.

local http = require "kong.plugins.headgate.http"
local message = require "kong.plugins.headgate.message"

local byte, char, floor, gsub, match, sub = string.byte, string.char, math.floor, string.gsub, string.match, string.sub

local _M = {}

local METHOD = "/k1s0.system.ratelimit.v1.RateLimitService/CheckRateLimit"

-- Type of a frame with trailers instead of a message.
local TRAILERS = 128

-- Maximum length of a request id on the server.
local MAX_ID_BYTES = 128

local function frame(bytes)
  local length = #bytes
  return char(0, floor(length / 16777216) % 256, floor(length / 65536) % 256, floor(length / 256) % 256, length % 256)
    .. bytes
end

-- Returns the message and the trailers of a body.
local function unframe(body)
  local found, trailers, from = nil, "", 1
  while from + 4 <= #body do
    local kind, a, b, c, d = byte(body, from, from + 4)
    local length = ((a * 256 + b) * 256 + c) * 256 + d
    local held = sub(body, from + 5, from + 4 + length)
    if kind == TRAILERS then
      trailers = held
    elseif kind == 0 then
      found = held
    end
    from = from + 5 + length
  end
  return found, trailers
end

-- Sanitizes text for the log: bounded, and without line breaks.
local function sanitized(text)
  local unescaped = gsub(sub(text or "", 1, 200), "%%(%x%x)", function(code)
    return char(tonumber(code, 16))
  end)
  return (gsub(unescaped, "%c", " "))
end

local function request(conf, body, request_id)
  local lines = {
    "POST " .. METHOD .. " HTTP/1.1",
    "Host: " .. http.bracketed(conf.host) .. ":" .. conf.port,
    "Content-Type: application/grpc-web+proto",
    "X-Grpc-Web: 1",
    "Grpc-Timeout: " .. conf.timeout .. "m",
    "Content-Length: " .. #body,
  }
  if conf.token then
    -- The schema checks this too, but not values from a vault.
    if not match(conf.token, "^[!-~]+$") then
      return nil, "invalid token: expected printable characters without spaces"
    end
    lines[#lines + 1] = "Authorization: Bearer " .. conf.token
  end
  if request_id and #request_id <= MAX_ID_BYTES and match(request_id, "^[!-~]+$") then
    lines[#lines + 1] = "X-Request-Id: " .. request_id
  end
  return table.concat(lines, "\r\n") .. "\r\n\r\n" .. body
end

-- Decodes a response.
local function read(response)
  if response.status ~= 200 then
    return nil, "status " .. response.status .. ": " .. sanitized(response.body)
  end
  local reply, trailers = unframe(response.body)
  local status = response.headers["grpc-status"] or match(trailers, "grpc%-status:%s*(%d+)")
  if status ~= "0" then
    local words = response.headers["grpc-message"] or match(trailers, "grpc%-message:%s*([^\r\n]*)")
    return nil, "grpc-status " .. sanitized(status or "missing") .. ": " .. sanitized(words)
  end
  if not reply then
    return nil, "empty response"
  end
  return message.decode(reply)
end

-- Checks the rate limit of `subject`, or of `attributes` if there are any.
function _M.check(conf, subject, attributes, request_id)
  local body = message.encode(conf.rule_id or conf.scope, subject, conf.cost, attributes)
  local bytes, err = request(conf, frame(body), request_id)
  if not bytes then
    return nil, err
  end
  local response
  response, err = http.send({
    host = conf.host,
    port = conf.port,
    tls = conf.tls,
    verify = conf.tls_verify,
    server_name = conf.tls_server_name,
    timeout = conf.timeout,
    keepalive = conf.keepalive_timeout,
    pool_size = conf.keepalive_pool_size,
  }, bytes)
  if not response then
    return nil, err
  end
  return read(response)
end

return _M
