use std::fs;

use super::*;
use crate::tests::Config;

/// Returns the section that `yaml` describes, or the error message.
fn load(yaml: &str) -> Result<AuthConfig, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yaml");
    fs::write(&file, yaml).unwrap();
    let folder = format!("{}/", folder.path().display());
    let loaded = Config::load(Some(&file), []);
    loaded.map(|config| config.auth).map_err(|error| error.to_string().replace(&folder, ""))
}

fn load_variable(tokens: &str) -> Result<AuthConfig, String> {
    let variable = ("HEADGATE__AUTH__TOKENS".to_owned(), tokens.to_owned());
    let loaded = Config::load(None, [variable]);
    loaded.map(|config| config.auth).map_err(|error| error.to_string())
}

#[test]
fn the_default_trusts_no_one() {
    let auth = load("").unwrap();
    assert!(!auth.authenticates());
    assert_eq!((auth.mode, auth.jwks_cache_seconds.get()), (None, 600));
}

#[test]
fn every_key_is_read() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    fs::write(secret.path(), "hunter2-hunter2-hunter2\n").unwrap();
    let auth = load(&format!(
        "
auth:
  jwks_url: https://issuer.example/certs
  issuer: https://issuer.example
  audience: headgate
  jwks_cache_seconds: 60
  leeway_seconds: 0
  tokens:
    - name: ci
      role: sys_operator
      token_file: {}
    - {{name: eyes, role: sys_auditor, token: hunter3-hunter3-hunter3}}
",
        secret.path().display()
    ))
    .unwrap();
    assert_eq!(auth.jwks_url.as_ref().unwrap().get().as_str(), "https://issuer.example/certs");
    assert_eq!(auth.issuer.as_deref(), Some("https://issuer.example"));
    assert_eq!(auth.audience.as_deref(), Some("headgate"));
    assert_eq!((auth.jwks_cache_seconds.get(), auth.leeway_seconds.get()), (60, 0));
    let told = |token: &TokenConfig| (token.name.clone(), token.role, token.token.expose().len());
    let tokens: Vec<_> = auth.tokens.iter().map(told).collect();
    assert_eq!(tokens, [("ci".into(), Role::Operator, 23), ("eyes".into(), Role::Auditor, 23)]);
    assert!(!format!("{auth:?}").contains("hunter"));
}

#[test]
fn the_query_of_a_url_is_not_shown() {
    for (url, shown) in [
        ("https://issuer.example/certs", "https://issuer.example/certs"),
        ("https://issuer.example/certs?key=hunter2", "https://issuer.example/certs?***"),
    ] {
        let url = HttpUrl::try_from(url.to_owned()).unwrap();
        assert_eq!(format!("{url:?}"), shown);
        assert_eq!(url.print().to_string(), format!("\"{shown}\"\n"));
    }
}

#[test]
fn a_variable_lists_tokens_as_yaml() {
    let auth = load_variable("[{name: ci, role: sys_admin, token: 0123456789abcdef}]").unwrap();
    assert_eq!((auth.tokens[0].name.as_str(), auth.tokens[0].role), ("ci", Role::Admin));
    for hunter2 in ["hunter2", "[{hunter2", "{hunter2: x}", ""] {
        assert_eq!(
            load_variable(hunter2).unwrap_err(),
            "invalid configuration:\n  auth.tokens (HEADGATE__AUTH__TOKENS): expected a \
             list such as [{name: ci, role: sys_operator, token_file: /run/secrets/ci}]"
        );
    }
}

#[test]
fn each_problem_names_its_place() {
    let url = "expected an http:// or https:// URL without user or password, such as \
               https://issuer.example/realms/main/protocol/openid-connect/certs";
    let off = "off disables authentication, but there is a jwks_url, a token or a client \
               certificate: remove one or the other";
    let cases = [
        ("jwks_url: ftp://a", format!("jwks_url (config.yaml:2): {url}")),
        ("jwks_url: issuer.example/certs", format!("jwks_url (config.yaml:2): {url}")),
        ("jwks_url: http://me:hunter2@a", format!("jwks_url (config.yaml:2): {url}")),
        ("{mode: off, jwks_url: http://a}", format!("mode (config.yaml:2): {off}")),
        (
            "issuer: a",
            "issuer (config.yaml:2): requires auth.jwks_url, which is not set".to_owned(),
        ),
        (
            "{jwks_url: http://a, audience: ''}",
            "audience (config.yaml:2): expected a non-empty text".to_owned(),
        ),
        (
            "jwks_cache_seconds: 0",
            "jwks_cache_seconds (config.yaml:2): expected a whole number from 1 to 86400, got \"0\""
                .to_owned(),
        ),
        (
            "jwks: a",
            "jwks (config.yaml:2): unknown key; known here: mode, jwks_url, issuer, audience, \
             ca_file, jwks_cache_seconds, leeway_seconds, tokens, client_certificates"
                .to_owned(),
        ),
    ];
    for (yaml, expected) in cases {
        let told = load(&format!("auth:\n  {yaml}\n")).unwrap_err();
        assert_eq!(told, format!("invalid configuration:\n  auth.{expected}"), "{yaml}");
    }
}

#[test]
fn each_problem_of_a_token_names_its_place() {
    let length = "expected 16 to 4096 visible ASCII characters, without spaces";
    let cases = [
        ("x", "tokens[1] (config.yaml:4): expected a section, got a text".to_owned()),
        ("{role: sys_admin}", "tokens[1] (config.yaml:4): missing key \"name\"".to_owned()),
        (
            "{name: b, role: sys_admin}",
            "tokens[1] (config.yaml:4): missing key \"token\"".to_owned(),
        ),
        (
            "{name: b, role: admin, token: hunter2-hunter2-hunter2}",
            "tokens[1].role (config.yaml:4): expected sys_auditor or sys_operator or sys_admin, got \
             \"admin\""
                .to_owned(),
        ),
        (
            "{name: b, roles: [sys_admin]}",
            "tokens[1].roles (config.yaml:4): unknown key; known here: name, role, token".to_owned(),
        ),
        (
            "{name: b, role: sys_admin, token: hunter2}",
            format!("tokens[1].token (config.yaml:4): {length}"),
        ),
        (
            "{name: b, role: sys_admin, token: hunter2 hunter2 hunter2}",
            format!("tokens[1].token (config.yaml:4): {length}"),
        ),
        (
            "{name: a, role: sys_admin, token: hunter2-hunter2-hunter2}",
            "tokens[1].name (config.yaml:4): duplicate name: another token has it".to_owned(),
        ),
        (
            "{name: b, role: sys_admin, token: 0123456789abcdef}",
            "tokens[1].token (config.yaml:4): duplicate token: another name has it".to_owned(),
        ),
        (
            "{name: \"\\n\", role: sys_admin, token: hunter2-hunter2-hunter2}",
            "tokens[1].name (config.yaml:4): expected 1 to 64 visible characters".to_owned(),
        ),
        (
            "{name: b, role: sys_admin, token: a, token_file: /b}",
            "tokens[1].token_file (config.yaml:4): set token or token_file, not both".to_owned(),
        ),
        (
            "{name: b, role: sys_admin, token_file: /no/such/file}",
            "tokens[1].token_file (config.yaml:4): cannot read /no/such/file: No such file or \
             directory (os error 2)"
                .to_owned(),
        ),
    ];
    for (yaml, expected) in cases {
        let first = "{name: a, role: sys_auditor, token: 0123456789abcdef}";
        let told = load(&format!("auth:\n  tokens:\n    - {first}\n    - {yaml}\n")).unwrap_err();
        assert_eq!(told, format!("invalid configuration:\n  auth.{expected}"), "{yaml}");
        assert!(!told.contains("hunter2"), "{told}");
    }
}

#[test]
fn off_and_tokens_contradict_each_other() {
    let token = "{name: a, role: sys_auditor, token: 0123456789abcdef}";
    let told = load(&format!("auth:\n  mode: off\n  tokens: [{token}]\n")).unwrap_err();
    assert!(told.contains("auth.mode (config.yaml:2): off disables authentication"), "{told}");
}
