std = "ngx_lua"
max_line_length = 120
self = false
globals = { "kong" }
