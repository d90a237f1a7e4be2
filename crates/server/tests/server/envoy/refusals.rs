//! Refused requests, and servers that do not start.

use headgate_server::{App, Config};
use tonic::{Code, Request};

use super::{
    DOMAINS,
    client::{Client, of, request},
    start,
};
use crate::{
    grpc::client::{assert_invalid, by},
    harness::Server,
};

#[tokio::test]
async fn an_invalid_request_lists_missing_fields() {
    let server = start(&[]).await;
    let client = Client::connect(server.grpc_address).await;
    let ask = async |domain: &str, descriptors: &[_]| {
        client.0.clone().should_rate_limit(request(domain, descriptors)).await.unwrap_err()
    };
    assert_invalid(
        &ask("", &[]).await,
        &[("domain", "domain is required"), ("descriptors", "at least one descriptor is required")],
    );
    let many = vec![of(&[("a", "b")]); 129];
    let reported = "at most 128 descriptors are allowed, got 129";
    assert_invalid(&ask("edge", &many).await, &[("descriptors", reported)]);
    let reported = "each descriptor needs 1 to 64 entries, and each entry a key";
    for descriptor in [of(&[]), of(&[("", "x")]), of(&[("a", "b"); 65])] {
        assert_invalid(&ask("edge", &[descriptor]).await, &[("descriptors", reported)]);
    }
    assert!(!client.ask("edge", &many[..128]).await.is_over());
}

#[tokio::test]
async fn the_service_is_unimplemented_unless_enabled() {
    let server = Server::start(&[]).await;
    let client = Client::connect(server.grpc_address).await;
    let asked = client.0.clone().should_rate_limit(request("edge", &[of(&[("a", "b")])])).await;
    assert_eq!(asked.unwrap_err().code(), Code::Unimplemented);
}

#[tokio::test]
async fn any_role_suffices_where_a_token_is_required() {
    let tokens = "[{name: envoy, role: sys_auditor, token: a-token-for-envoy}]";
    let server = start(&[("envoy.auth", "token"), ("auth.tokens", tokens)]).await;
    let mut client = Client::connect(server.grpc_address).await.0;
    let asked = || request("mail", &[of(&[("mailbox", "m1")])]);
    let refused = client.should_rate_limit(Request::new(asked())).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
    let refused = client.should_rate_limit(by("an-unknown-token", asked())).await;
    assert_eq!(refused.unwrap_err().code(), Code::Unauthenticated);
    assert!(client.should_rate_limit(by("a-token-for-envoy", asked())).await.is_ok());
}

pub(super) fn load(keys: &[(&str, &str)]) -> Result<Config, String> {
    let variables = keys.iter().map(|(key, value)| {
        let name = format!("HEADGATE__{}", key.to_ascii_uppercase().replace('.', "__"));
        (name, (*value).to_owned())
    });
    Config::load(None, variables).map_err(|error| error.to_string())
}

#[test]
fn a_public_address_requires_envoy_auth_to_be_set() {
    let open = [
        ("envoy.enabled", "true"),
        ("envoy.config_dir", DOMAINS),
        ("server.host", "0.0.0.0"),
        ("auth.mode", "off"),
    ];
    let reported = load(&open).unwrap_err();
    assert!(reported.contains("envoy.auth: other machines can reach the gRPC port"), "{reported}");
    for auth in ["token", "off"] {
        assert!(load(&[&open[..], &[("envoy.auth", auth)]].concat()).is_ok());
    }
    let reported = load(&[("envoy.enabled", "true")]).unwrap_err();
    let expected = "envoy: no configuration source: set envoy.config_dir, envoy.config_file, envoy.xds.url or \
                    envoy.rules";
    assert!(reported.contains(expected), "{reported}");
    assert!(load(&[("envoy.enabled", "true"), ("envoy.rules", "true")]).is_ok());
}

#[tokio::test]
async fn invalid_files_are_an_error_at_startup() {
    for (text, reported) in [
        ("descriptors: []", "domain (FILE:1): missing"),
        ("domain: a\nlimits: []", "unknown key; known here: domain, descriptors, shadow_mode"),
        ("domain: a\ndescriptors:\n  - value: x\n", "descriptors[0].key (FILE:3): missing"),
        (
            "domain: a\ndescriptors:\n  - key: k\n    rate_limit:\n      unit: fortnight\n      requests_per_unit: 1\n",
            "descriptors[0].rate_limit.unit (FILE:5): expected one of second, minute, hour, day, week, month, year, got \"fortnight\"",
        ),
        (
            "domain: a\ndescriptors:\n  - key: k\n    rate_limit:\n      requests_per_unit: 1\n",
            "descriptors[0].rate_limit.unit (FILE:4): missing; expected one of second, minute",
        ),
        (
            "domain: a\ndescriptors:\n  - key: k\n    rate_limit: {unlimited: true, unit: day}\n",
            "descriptors[0].rate_limit.unit (FILE:4): an unlimited rate has no unit",
        ),
        (
            "domain: a\ndescriptors:\n  - key: k\n  - key: k\n",
            "descriptors[1] (FILE:4): duplicate key and value",
        ),
        (
            "domain: a\ndescriptors:\n  - key: k\n    descriptors:\n      - key: l\n        rate_limit: {unit: day, requests_per_unit: 1, burst: 2}\n",
            "descriptors[0].descriptors[0].rate_limit (FILE:6): fixed_window has no burst",
        ),
        (
            "domain: a\ndescriptors:\n  - key: k\n    rate_limit: {name: n, unit: day, requests_per_unit: 1, replaces: [{name: n}]}\n",
            "descriptors[0].rate_limit.replaces[0].name (FILE:4): a rate limit cannot replace itself",
        ),
        (
            "domain: a\ndescriptors:\n  - key: k\n    value: v\n    share_threshold: true\n",
            "descriptors[0].share_threshold (FILE:5): only a value with a wildcard (*)",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.yaml");
        std::fs::write(&file, text).unwrap();
        let (file, data) = (file.to_str().unwrap(), folder.path().to_str().unwrap());
        let keys =
            [("envoy.enabled", "true"), ("envoy.config_file", file), ("server.data_dir", data)];
        let Err(error) = App::build(&load(&keys).unwrap()).await else {
            panic!("{text} is accepted");
        };
        let error = error.to_string();
        assert!(error.contains(&reported.replace("FILE", file)), "{text}\n{error}");
        assert!(error.contains(file), "{error}");
    }
}
