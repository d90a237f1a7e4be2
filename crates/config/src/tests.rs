mod changes;
mod document;
mod null;
mod secret;
mod yaml;

use std::{fs, path::PathBuf};

use serde::Deserialize;

use crate::{Bounded, ConfigError, Problem, Schema, Secret, SectionList};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
struct Config {
    server: Server,
    database: Database,
    tokens: Vec<Token>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
struct Server {
    port: Bounded<1, 65_535>,
    verbose: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
struct Database {
    name: String,
    user: String,
    port: Option<Bounded<1, 65_535>>,
    hosts: Vec<String>,
    password: Option<Secret>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a section")]
struct Token {
    name: String,
    value: Secret,
}

impl Default for Server {
    fn default() -> Self {
        Self { port: Bounded::of::<8080>(), verbose: false }
    }
}

const SCHEMA: Schema = Schema {
    variable_prefix: "TEST__",
    secrets: &["database.password"],
    section_lists: &[SectionList {
        key: "tokens",
        example: "[{name: ci, value: 123}]",
        secret: Some("value"),
    }],
};

fn validate(config: &Config) -> Vec<Problem> {
    let unnamed = config.server.verbose && config.database.name.is_empty();
    unnamed.then(|| Problem::new("server.verbose", "needs database.name")).into_iter().collect()
}

/// Loads `yaml` under `variables`; an error is returned as its message.
fn load(yaml: &str, variables: &[(&str, &str)]) -> Result<Config, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yaml");
    fs::write(&file, yaml).unwrap();
    let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    let folder = format!("{}/", folder.path().display());
    SCHEMA
        .load(Some(&file), variables, validate)
        .map_err(|error: ConfigError| error.to_string().replace(&folder, ""))
}

fn problems(yaml: &str, variables: &[(&str, &str)]) -> String {
    load(yaml, variables).expect_err("an invalid configuration")
}

#[test]
fn variables_override_the_file() {
    let variables = [
        ("TEST__SERVER__PORT", "9001"),
        ("TEST__SERVER__VERBOSE", "true"),
        ("TEST_SERVER__PORT", "1"),
        ("PATH", "/bin"),
    ];
    let config = load("server: {port: 9000}\ndatabase: {name: main}\n", &variables).unwrap();
    assert_eq!((config.server.port.get(), config.server.verbose), (9001, true));
}

#[test]
fn text_keeps_its_spelling_where_a_string_is_expected() {
    let config = load("database: {name: 0.10, user: yes}\n", &[]).unwrap().database;
    assert_eq!((config.name.as_str(), config.user.as_str()), ("0.10", "yes"));
}

#[test]
fn variables_set_lists() {
    let variables = [
        ("TEST__DATABASE__HOSTS", "a, b"),
        ("TEST__TOKENS", "[{name: ci, value: 12}, {name: ops, value: 34}]"),
    ];
    let config = load("", &variables).unwrap();
    assert_eq!(config.database.hosts, ["a", "b"]);
    let tokens: Vec<_> = config.tokens.iter().map(|it| (&*it.name, it.value.expose())).collect();
    assert_eq!(tokens, [("ci", "12"), ("ops", "34")]);
    assert_eq!(
        problems("", &[("TEST__TOKENS", "ci")]),
        "invalid configuration:\n  tokens (TEST__TOKENS): expected a list such as \
         [{name: ci, value: 123}]"
    );
}

#[test]
fn every_problem_is_reported_with_its_place() {
    let yaml = "server:\n  prot: 80\n  verbose: true\ntokens:\n  - {name: ci}\n";
    let expected = r#"invalid configuration:
  database.port (TEST__DATABASE__PORT): expected a whole number from 1 to 65535, got "0"
  server.prot (config.yaml:2): unknown key; known here: port, verbose
  server.verbose (config.yaml:3): needs database.name
  tokens[0] (config.yaml:5): missing key "value""#;
    assert_eq!(problems(yaml, &[("TEST__DATABASE__PORT", "0")]), expected);
}

#[test]
fn a_variable_without_a_key_is_rejected() {
    assert_eq!(
        problems("", &[("TEST__SERVER__PROT", "80"), ("TEST__SERVER", "x")]),
        "invalid configuration:\n  \
         server (TEST__SERVER): expected a section, got a text\n  \
         server.prot (TEST__SERVER__PROT): expected a section above this key, found a value"
    );
}

#[test]
fn a_missing_file_is_named() {
    let missing = PathBuf::from("/no/such/file.yaml");
    let error = SCHEMA.load(Some(&missing), [], validate).unwrap_err();
    let expected = "cannot read /no/such/file.yaml: No such file or directory (os error 2)";
    assert_eq!(error.to_string(), expected);
}
