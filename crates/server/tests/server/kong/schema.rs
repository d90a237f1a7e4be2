//! Validation of the plugin's configuration.

use std::{net::Ipv4Addr, path::Path, process::Command};

use headgate_testkit::{free_port, require};

use super::gateway::Gateway;

const PLUGIN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plugins/kong");

#[tokio::test]
async fn an_invalid_configuration_is_rejected() {
    let gateway = (Ipv4Addr::LOCALHOST, free_port()).into();
    let gateway = require!(Gateway::start(gateway, "").await);
    let cases = [
        ("{}", "ok"),
        ("{ token = \"{vault://env/headgate-token}\", tls = true }", "ok"),
        ("{ limit_by = \"header\", header_name = \"X-Tenant\" }", "ok"),
        ("{ limit_by = \"header\" }", "header_name: required field missing"),
        (
            "{ limit_by = \"planet\" }",
            "limit_by: expected one of: consumer, credential, header, ip, service, route",
        ),
        ("{ scope = \"tenant\" }", "scope: expected one of: service, user, endpoint"),
        ("{ timeout = 0 }", "timeout: value should be between 1 and 60000"),
        ("{ timeout = 1.5 }", "timeout: expected integer"),
        ("{ ipv6_prefix_length = 48 }", "ok"),
        ("{ ipv6_prefix_length = 65 }", "ipv6_prefix_length: value should be between 48 and 64"),
        ("{ port = 70000 }", "port: value should be between 0 and 65535"),
        ("{ host = \"a b\" }", "host: invalid value"),
        ("{ rule_id = \"gold\" }", "rule_id: invalid value"),
        ("{ fault_tolerant = \"yes\" }", "fault_tolerant: expected boolean"),
        ("{ fault_tolerent = true }", "fault_tolerent: unknown field"),
        ("{ attributes = { tenant = \"$header.x-tenant\", region = \"eu\" } }", "ok"),
        ("{ attributes = { [\"a b\"] = \"x\" } }", "attributes: a b: invalid value"),
        (
            "{ rule_id = \"0d0c0000-0000-4000-8000-000000000000\", attributes = { a = \"x\" } }",
            "only one or none of these fields must be set: rule_id, attributes",
        ),
    ];
    for (conf, expected) in cases {
        assert_eq!(gateway.judge(conf).await, expected, "{conf}");
    }
    let unknown = gateway.judge("{ attributes = { a = \"$planet\" } }").await;
    assert!(
        unknown.starts_with("attributes: a: unknown variable; known: $client_ip,"),
        "{unknown}"
    );
    let many: Vec<String> = (0..32).map(|number| format!("a{number} = \"x\"")).collect();
    let many = gateway.judge(&format!("{{ attributes = {{ {} }} }}", many.join(", "))).await;
    assert_eq!(many, "attributes: length must be at most 31");
}

#[test]
fn every_file_is_in_the_rockspec_and_every_key_in_the_readme() {
    let read = |name: &str| std::fs::read_to_string(Path::new(PLUGIN).join(name)).unwrap();
    let rockspec = read("kong-plugin-headgate-0.1.0-1.rockspec");
    for entry in std::fs::read_dir(Path::new(PLUGIN).join("kong/plugins/headgate")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let (file, module) =
            (format!("\"kong/plugins/headgate/{name}\""), name.replace(".lua", ""));
        assert!(rockspec.contains(&file), "{name}");
        assert!(rockspec.contains(&format!("[\"kong.plugins.headgate.{module}\"]")), "{name}");
    }
    assert!(read("kong/plugins/headgate/handler.lua").contains("VERSION = \"0.1.0\""));

    let schema = read("kong/plugins/headgate/schema.lua");
    let fields =
        schema.lines().filter_map(|line| line.strip_prefix("        { ")?.split(' ').next());
    let fields: Vec<&str> = fields.collect();
    assert_eq!(fields.len(), 19, "{fields:?}");
    let readme = read("README.md");
    for field in fields {
        assert!(readme.contains(&format!("| `{field}` |")), "{field}");
    }
}

/// The plugin's configuration in each YAML example of a document, as Lua.
fn examples(document: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(document);
    let text = std::fs::read_to_string(path).unwrap();
    let blocks = text.split("```yaml").skip(1).map(|rest| rest.split("```").next().unwrap());
    let ours = blocks.filter_map(|block| block.split("- name: headgate\n").nth(1));
    ours.map(|rest| {
        let mut lines = rest.lines();
        let config = lines.next().unwrap();
        assert_eq!(config.trim(), "config:");
        let indent = config.len() - config.trim_start().len();
        let fields = lines.take_while(|line| line.len() - line.trim_start().len() > indent);
        lua(&fields.collect::<Vec<_>>())
    })
    .collect()
}

/// A mapping in YAML, with mappings as values, as a table in Lua.
fn lua(lines: &[&str]) -> String {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let (mut fields, mut rest) = (Vec::new(), lines);
    while let [line, below @ ..] = rest {
        let own = below.iter().take_while(|next| indent(next) > indent(line)).count();
        let (nested, next) = below.split_at(own);
        let (name, value) = line.trim().split_once(':').unwrap();
        let value = value.trim();
        let is_word = value.parse::<u64>().is_err() && value.parse::<bool>().is_err();
        fields.push(match nested {
            [] if is_word => format!("{name} = \"{value}\""),
            [] => format!("{name} = {value}"),
            nested => format!("{name} = {}", lua(nested)),
        });
        rest = next;
    }
    format!("{{ {} }}", fields.join(", "))
}

#[tokio::test]
async fn the_examples_of_the_guides_are_accepted() {
    let gateway = (Ipv4Addr::LOCALHOST, free_port()).into();
    let gateway = require!(Gateway::start(gateway, "").await);
    let examples = ["plugins/kong/README.md", "docs/guides/kong.md"].map(examples).concat();
    assert_eq!(examples.len(), 4);
    for example in examples {
        assert_eq!(gateway.judge(&example).await, "ok", "{example}");
    }
}

#[test]
fn the_lua_passes_the_linter() {
    let checker = require!(headgate_testkit::find_program("luacheck"));
    let output = Command::new(checker).args(["--no-color", "."]).current_dir(PLUGIN).output();
    let output = output.expect("luacheck runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
