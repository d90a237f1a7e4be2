package = "kong-plugin-headgate"
version = "0.1.0-1"

source = {
  url = "git+https://github.com/headgate/headgate.git",
  dir = "headgate/plugins/kong",
}

description = {
  summary = "Rate limits of Headgate in Kong Gateway",
  homepage = "https://github.com/headgate/headgate",
  license = "MIT OR Apache-2.0",
}

-- Kong brings all that it needs.
dependencies = {}

build = {
  type = "builtin",
  modules = {
    ["kong.plugins.headgate.attributes"] = "kong/plugins/headgate/attributes.lua",
    ["kong.plugins.headgate.client"] = "kong/plugins/headgate/client.lua",
    ["kong.plugins.headgate.denials"] = "kong/plugins/headgate/denials.lua",
    ["kong.plugins.headgate.handler"] = "kong/plugins/headgate/handler.lua",
    ["kong.plugins.headgate.http"] = "kong/plugins/headgate/http.lua",
    ["kong.plugins.headgate.message"] = "kong/plugins/headgate/message.lua",
    ["kong.plugins.headgate.schema"] = "kong/plugins/headgate/schema.lua",
    ["kong.plugins.headgate.subject"] = "kong/plugins/headgate/subject.lua",
  },
}
