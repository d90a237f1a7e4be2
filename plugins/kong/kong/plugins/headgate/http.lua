-- HTTP/1.1 requests over keep-alive connections.

local floor = math.floor
local find, gsub, lower, match, sub = string.find, string.gsub, string.lower, string.match, string.sub
local now, tcp, update_time = ngx.now, ngx.socket.tcp, ngx.update_time

local _M = {}

local MAX_HEADERS = 64
local MAX_CHUNKS = 64
local MAX_RESPONSE_BYTES = 64 * 1024

-- A keep-alive connection may have just been closed by the server.
local MAX_ATTEMPTS = 3

-- An IPv6 address needs brackets before a port and for nginx to connect.
function _M.bracketed(host)
  if find(host, ":", 1, true) and sub(host, 1, 1) ~= "[" then
    return "[" .. host .. "]"
  end
  return host
end

-- Sets the timeout of the next step to the remaining time, so that the whole exchange ends in time.
local function set_remaining_time(sock, deadline)
  update_time()
  local left = floor(deadline - now() * 1000)
  if left < 1 then
    return nil, "timeout"
  end
  sock:settimeout(left)
  return true
end

local function connect(sock, target, deadline)
  local in_time, late = set_remaining_time(sock, deadline)
  if not in_time then
    return nil, late
  end
  -- Connections are reused only for requests with the same settings.
  local pool = table.concat({
    "headgate", target.host, target.port, tostring(target.tls), target.server_name or "",
    tostring(target.verify),
  }, "|")
  local options = { pool = pool, pool_size = target.pool_size }
  local connected, err = sock:connect(_M.bracketed(target.host), target.port, options)
  if not connected then
    return nil, err
  end
  if target.tls and sock:getreusedtimes() == 0 then
    in_time, late = set_remaining_time(sock, deadline)
    if not in_time then
      return nil, late
    end
    return sock:sslhandshake(nil, target.server_name or target.host, target.verify)
  end
  return true
end

-- Buffered reading with a total deadline: the timeout of nginx restarts with every byte.
local Reader = {}
Reader.__index = Reader

function Reader.new(sock, deadline)
  return setmetatable({ sock = sock, deadline = deadline, buffer = "" }, Reader)
end

function Reader:more()
  if #self.buffer > MAX_RESPONSE_BYTES then
    return nil, "response too long"
  end
  local in_time, late = set_remaining_time(self.sock, self.deadline)
  if not in_time then
    return nil, late
  end
  local bytes, err = self.sock:receiveany(4096)
  if not bytes then
    return nil, err
  end
  self.begun = true
  self.buffer = self.buffer .. bytes
  return true
end

function Reader:bytes(length)
  while #self.buffer < length do
    local came, err = self:more()
    if not came then
      return nil, err
    end
  end
  local bytes = sub(self.buffer, 1, length)
  self.buffer = sub(self.buffer, length + 1)
  return bytes
end

function Reader:line()
  local from = find(self.buffer, "\n", 1, true)
  while not from do
    local came, err = self:more()
    if not came then
      return nil, err
    end
    from = find(self.buffer, "\n", 1, true)
  end
  local line = sub(self.buffer, 1, from - 1)
  self.buffer = sub(self.buffer, from + 1)
  return (gsub(line, "\r$", ""))
end

-- Reads the status and the headers, with names in lower case.
local function read_head(reader)
  local line, err = reader:line()
  if not line then
    return nil, err
  end
  local status = match(line, "^HTTP/1%.1 (%d%d%d)")
  if not status then
    return nil, "response is not HTTP/1.1"
  end
  local headers = {}
  for _ = 1, MAX_HEADERS do
    line, err = reader:line()
    if not line then
      return nil, err
    end
    if line == "" then
      return { status = tonumber(status), headers = headers }
    end
    local name, value = match(line, "^([^:%s]+):%s*(.-)%s*$")
    if not name then
      return nil, "invalid header in response"
    end
    headers[lower(name)] = value
  end
  return nil, "too many headers in response"
end

local function read_chunks(reader)
  local chunks = {}
  while true do
    local line, err = reader:line()
    if not line then
      return nil, err
    end
    local size = tonumber(match(line, "^(%x+)") or "", 16)
    if not size or size > MAX_RESPONSE_BYTES or #chunks == MAX_CHUNKS then
      return nil, "invalid chunk in response"
    end
    chunks[#chunks + 1], err = reader:bytes(size)
    if err then
      return nil, err
    end
    -- Every chunk ends with a line break. There are no trailers: none are requested.
    line, err = reader:line()
    if line ~= "" then
      return nil, err or "invalid chunk in response"
    end
    if size == 0 then
      return table.concat(chunks)
    end
  end
end

local function read_body(reader, headers)
  if headers["transfer-encoding"] then
    return read_chunks(reader)
  end
  local length = tonumber(match(headers["content-length"] or "", "^%d+$"))
  if not length or length > MAX_RESPONSE_BYTES then
    return nil, "response without a length, or longer than " .. MAX_RESPONSE_BYTES
  end
  return reader:bytes(length)
end

-- Sends the request and reads the response. The third result is true if the server cannot have seen the
-- request, so that a retry is safe.
local function exchange(sock, request, deadline)
  local reused = sock:getreusedtimes() > 0
  local in_time, late = set_remaining_time(sock, deadline)
  if not in_time then
    return nil, late
  end
  local sent, err = sock:send(request)
  if not sent then
    return nil, err, reused and err == "closed"
  end
  local reader = Reader.new(sock, deadline)
  local response
  response, err = read_head(reader)
  if not response then
    local hung_up = err == "closed" or err == "connection reset by peer"
    return nil, err, reused and hung_up and not reader.begun
  end
  response.body, err = read_body(reader, response.headers)
  if not response.body then
    return nil, err
  end
  -- Excess bytes are not part of any response.
  response.reusable = reader.buffer == "" and lower(response.headers.connection or "") ~= "close"
  return response
end

-- Sends `request` to `target`. Returns the status, the headers and the body of the response, within
-- `target.timeout` milliseconds.
function _M.send(target, request)
  update_time()
  local deadline = now() * 1000 + target.timeout
  local problem
  for _ = 1, MAX_ATTEMPTS do
    local sock = tcp()
    local connected, err = connect(sock, target, deadline)
    if not connected then
      sock:close()
      return nil, "cannot connect: " .. (err or "unknown")
    end
    local response, unseen
    response, err, unseen = exchange(sock, request, deadline)
    if response then
      if response.reusable then
        sock:setkeepalive(target.keepalive, target.pool_size)
      else
        sock:close()
      end
      return response
    end
    sock:close()
    problem = err or "unknown"
    if not unseen then
      break
    end
  end
  return nil, sub(problem, 1, 200)
end

return _M
