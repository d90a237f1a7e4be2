local attributes = require "kong.plugins.headgate.attributes"
local typedefs = require "kong.db.schema.typedefs"

return {
  name = "headgate",
  fields = {
    { protocols = typedefs.protocols_http },
    { config = {
      type = "record",
      fields = {
        -- Address of the gRPC listener of Headgate.
        { host = typedefs.host { required = true, default = "127.0.0.1" } },
        { port = typedefs.port { required = true, default = 50051 } },
        { tls = { type = "boolean", required = true, default = false } },
        { tls_verify = { type = "boolean", required = true, default = true } },
        { tls_server_name = typedefs.sni },
        { token = { type = "string", len_max = 4096, match = "^[!-~]+$", referenceable = true, encrypted = true } },

        -- Subject, rules and cost of a request.
        { scope = {
          type = "string", required = true, default = "user", one_of = { "service", "user", "endpoint" },
        } },
        { rule_id = { type = "string", uuid = true } },
        { limit_by = {
          type = "string", required = true, default = "consumer",
          one_of = { "consumer", "credential", "header", "ip", "service", "route" },
        } },
        { header_name = typedefs.header_name },
        { attributes = {
          type = "map", len_max = 31,
          keys = { type = "string", len_max = 64, match = "^[%w_.-]+$" },
          values = { type = "string", len_max = 1024, custom_validator = attributes.validate },
        } },
        -- Length of the IPv6 networks that count as one client, as `server.ipv6_prefix_length` in Headgate.
        { ipv6_prefix_length = { type = "integer", required = true, default = 64, between = { 48, 64 } } },
        { cost = { type = "integer", required = true, default = 1, between = { 1, 1000000 } } },

        -- Timeouts in milliseconds, and behaviour without a decision.
        { timeout = { type = "integer", required = true, default = 250, between = { 1, 60000 } } },
        { keepalive_timeout = { type = "integer", required = true, default = 60000, between = { 1, 3600000 } } },
        { keepalive_pool_size = { type = "integer", required = true, default = 64, between = { 1, 10000 } } },
        { fault_tolerant = { type = "boolean", required = true, default = true } },

        -- Responses to clients.
        { hide_client_headers = { type = "boolean", required = true, default = false } },
        { error_message = { type = "string", required = true, default = "API rate limit exceeded", len_max = 1000 } },
      },
    } },
  },
  entity_checks = {
    { conditional = {
      if_field = "config.limit_by", if_match = { eq = "header" },
      then_field = "config.header_name", then_match = { required = true },
    } },
    { mutually_exclusive = { "config.rule_id", "config.attributes" } },
  },
}
