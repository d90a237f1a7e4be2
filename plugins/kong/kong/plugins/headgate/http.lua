-- One HTTP/1.1 request over a connection that is kept for the next.

local floor, lower, match, sub = math.floor, string.lower, string.match, string.sub
local now, tcp, update_time = ngx.now, ngx.socket.tcp, ngx.update_time

local _M = {}

local MAX_HEADERS = 64
local MAX_BODY_BYTES = 64 * 1024

-- A kept connection may have been closed by the other side just now.
local MAX_ATTEMPTS = 3

-- Gives the next step the time that is left: whatever happens, the whole exchange ends in time.
local function hurry(sock, deadline)
  update_time()
  local left = floor(deadline - now() * 1000)
  if left < 1 then
    return nil, "timeout"
  end
  sock:settimeout(left)
  return true
end

local function receive(sock, deadline, what)
  local in_time, late = hurry(sock, deadline)
  if not in_time then
    return nil, late
  end
  return sock:receive(what)
end

local function connect(sock, target, deadline)
  local in_time, late = hurry(sock, deadline)
  if not in_time then
    return nil, late
  end
  -- A connection is kept for those alone who would have opened it in the same way.
  local pool = table.concat({
    "headgate", target.host, target.port, tostring(target.tls), target.server_name or "",
    tostring(target.verify),
  }, "|")
  local connected, err = sock:connect(target.host, target.port, { pool = pool, pool_size = target.pool_size })
  if not connected then
    return nil, err
  end
  if target.tls and sock:getreusedtimes() == 0 then
    in_time, late = hurry(sock, deadline)
    if not in_time then
      return nil, late
    end
    return sock:sslhandshake(nil, target.server_name or target.host, target.verify)
  end
  return true
end

-- The status and the headers, by their names in lower case.
local function read_head(sock, deadline)
  local line, err, begun = receive(sock, deadline, "*l")
  if not line then
    return nil, begun and begun ~= "" and "the answer ends in its head" or err
  end
  local status = match(line, "^HTTP/1%.1 (%d%d%d)")
  if not status then
    return nil, "the answer is not HTTP/1.1"
  end
  local headers = {}
  for _ = 1, MAX_HEADERS do
    line, err = receive(sock, deadline, "*l")
    if not line then
      return nil, err == "closed" and "the answer ends in its head" or err
    end
    if line == "" then
      return { status = tonumber(status), headers = headers }
    end
    local name, value = match(line, "^([^:%s]+):%s*(.-)%s*$")
    if not name then
      return nil, "the answer has a header that cannot be read"
    end
    headers[lower(name)] = value
  end
  return nil, "the answer has too many headers"
end

local function read_chunks(sock, deadline)
  local chunks, total = {}, 0
  while true do
    local line, err = receive(sock, deadline, "*l")
    if not line then
      return nil, err
    end
    local size = tonumber(match(line, "^(%x+)") or "", 16)
    if not size or total + size > MAX_BODY_BYTES then
      return nil, "the answer has a chunk that cannot be read"
    end
    if size > 0 then
      chunks[#chunks + 1], err = receive(sock, deadline, size)
      if err then
        return nil, err
      end
      total = total + size
    end
    -- Every chunk ends with an empty line. We ask for no trailers, and get none.
    line, err = receive(sock, deadline, "*l")
    if line ~= "" then
      return nil, err or "the answer has a chunk that cannot be read"
    end
    if size == 0 then
      return table.concat(chunks)
    end
  end
end

local function read_body(sock, deadline, headers)
  if headers["transfer-encoding"] then
    return read_chunks(sock, deadline)
  end
  local length = tonumber(match(headers["content-length"] or "", "^%d+$"))
  if not length or length > MAX_BODY_BYTES then
    return nil, "the answer has no length, or one beyond " .. MAX_BODY_BYTES
  end
  if length == 0 then
    return ""
  end
  return receive(sock, deadline, length)
end

-- Sends the request and reads all of the answer. The third result says that nobody saw the request.
local function exchange(sock, request, deadline)
  local reused = sock:getreusedtimes() > 0
  local in_time, late = hurry(sock, deadline)
  if not in_time then
    return nil, late
  end
  local sent, err = sock:send(request)
  if not sent then
    return nil, err, reused and err == "closed"
  end
  local response
  response, err = read_head(sock, deadline)
  if not response then
    return nil, err, reused and (err == "closed" or err == "connection reset by peer")
  end
  response.body, err = read_body(sock, deadline, response.headers)
  if not response.body then
    return nil, err
  end
  return response
end

-- Sends `request` to `target`, and gives the status, the headers and the body of the answer, all within
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
      if lower(response.headers.connection or "") == "close" then
        sock:close()
      else
        sock:setkeepalive(target.keepalive, target.pool_size)
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
