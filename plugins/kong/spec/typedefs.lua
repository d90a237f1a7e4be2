-- The field types of Kong that the schema uses. Called with a table, each returns an extended copy.

local function define(attributes)
  return setmetatable(attributes, {
    __call = function(_, more)
      local merged = {}
      for _, from in ipairs({ attributes, more }) do
        for name, value in pairs(from) do
          merged[name] = value
        end
      end
      return merged
    end,
  })
end

return {
  header_name = define({ type = "string", match = "^[%w_-]+$" }),
  host = define({ type = "string", match = "^%[?[%w.:_-]+%]?$" }),
  port = define({ type = "integer", between = { 0, 65535 } }),
  protocols_http = define({ type = "set" }),
  sni = define({ type = "string", match = "^[%w.*-]+$" }),
}
