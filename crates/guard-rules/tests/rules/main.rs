//! Middleware that decides by rules from a file.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod client;
mod early;
mod unknown_peer;

use std::{fs, net::SocketAddr, num::NonZeroU32, sync::Arc, time::Duration};

use axum::{Router, body::Body, extract::ConnectInfo, routing::any};
use headgate_guard::{Cidr, Ipv6Prefix, TrustedProxies};
use headgate_guard_rules::{Extractors, RuleLayer, RuleSet, RulesFile};
use headgate_testkit::{CapturedLog, Redis, require};
use http::{HeaderName, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

/// The tenant that authentication would find.
#[derive(Clone)]
struct Tenant(&'static str);

fn extractors() -> Extractors {
    Extractors::new()
        .method("method")
        .path("path")
        .address("address")
        .header("user", HeaderName::from_static("x-user"))
        .extension("tenant", |tenant: &Tenant| Some(tenant.0))
        .constant("service", "shop")
}

fn app(rules: &RuleSet) -> Router {
    let layer = RuleLayer::new(rules, extractors()).expect("valid extractors");
    Router::new().fallback(any(async || "hello")).layer(layer)
}

fn request(method: &str, path: &str, user: &str) -> Request<Body> {
    let peer = ConnectInfo(SocketAddr::from(([192, 0, 2, 7], 4000)));
    let request = Request::builder().method(method).uri(path).header("x-user", user);
    request.extension(peer).extension(Tenant("acme")).body(Body::empty()).expect("a request")
}

async fn send(app: &Router, request: Request<Body>) -> Response<Body> {
    app.clone().oneshot(request).await.unwrap()
}

async fn status(app: &Router, method: &str, path: &str, user: &str) -> StatusCode {
    send(app, request(method, path, user)).await.status()
}

const RULES: &str = "\
rules:
  - name: writes
    when:
      path: /v1/*
      method: [POST, PUT]
      address: {in: [192.0.2.0/24]}
      tenant: {exists: true}
    per: [tenant, user]
    limit: 2
    window_seconds: 8640000
";

#[tokio::test]
async fn requests_are_decided_by_the_rules_that_match() {
    let rules = RuleSet::in_memory();
    rules.replace(RULES).unwrap();
    let app = app(&rules);
    assert_eq!(status(&app, "POST", "/v1/a", "u1").await, 200);
    assert_eq!(status(&app, "PUT", "/v1/b", "u1").await, 200);
    let denied = send(&app, request("POST", "/v1/a", "u1")).await;
    assert_eq!(denied.status(), 429);
    let header = |name: &str| denied.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("x-ratelimit-limit"), "2");
    assert_eq!(header("x-ratelimit-remaining"), "0");
    assert_eq!(header("ratelimit-policy"), "\"writes\";q=2;w=8640000");
    assert!(header("retry-after").parse::<u64>().unwrap() > 0);
    let body = denied.into_body().collect().await.unwrap().to_bytes();
    assert!(body.starts_with(br#"{"code":"RATE_LIMITED""#), "{body:?}");

    // Encoded paths do not evade the rule, and nothing else matches it.
    assert_eq!(status(&app, "POST", "/%761/a", "u1").await, 429);
    assert_eq!(status(&app, "POST", "/v1/a", "u2").await, 200);
    assert_eq!(status(&app, "GET", "/v1/a", "u1").await, 200);
    assert_eq!(status(&app, "POST", "/v2/a", "u1").await, 200);
}

#[tokio::test]
async fn clients_behind_proxies_are_counted_by_network() {
    let rules = RuleSet::in_memory();
    let clients = "- {name: clients, when: {address: {in: ['2001:db8::/32']}}, per: [network], \
                   limit: 2, window_seconds: 8640000}";
    rules.replace(clients).unwrap();
    let proxies = TrustedProxies::from_iter(["192.0.2.0/24".parse::<Cidr>().unwrap()]);
    let extractors =
        Extractors::new().address("address").network("network").trusted_proxies(proxies);
    let layer = RuleLayer::new(&rules, extractors).unwrap();
    let app: Router = Router::new().fallback(any(async || "hello")).layer(layer);
    let from = async |client: &'static str| {
        let mut request = request("GET", "/", "u");
        request.headers_mut().insert("x-forwarded-for", client.parse().unwrap());
        send(&app, request).await.status()
    };
    assert_eq!(from("2001:db8:1:2::1").await, 200);
    assert_eq!(from("2001:db8:1:2::9").await, 200);
    assert_eq!(from("2001:db8:1:2::7").await, 429);
    assert_eq!(from("2001:db8:1:3::7").await, 200);
    assert_eq!(from("198.51.100.1").await, 200);
}

#[tokio::test]
async fn networks_have_the_length_that_the_service_sets() {
    let rules = RuleSet::in_memory();
    let clients = "- {name: clients, per: [network], limit: 1, window_seconds: 8640000}";
    rules.replace(clients).unwrap();
    let extractors = Extractors::new().network("network").ipv6_prefix(Ipv6Prefix::new(56).unwrap());
    let layer = RuleLayer::new(&rules, extractors).unwrap();
    let app: Router = Router::new().fallback(any(async || "hello")).layer(layer);
    let from = async |client: &str| {
        let mut request = request("GET", "/", "u");
        let peer = SocketAddr::new(client.parse().unwrap(), 4000);
        request.extensions_mut().insert(ConnectInfo(peer));
        send(&app, request).await.status()
    };
    assert_eq!(from("2001:db8:1:200::1").await, 200);
    assert_eq!(from("2001:db8:1:2ff::9").await, 429);
    assert_eq!(from("2001:db8:1:300::1").await, 200);
}

#[tokio::test]
async fn rules_by_scope_count_any_value() {
    let rules = RuleSet::in_memory();
    let users = "- {scope: user, identifier_pattern: '*', limit: 1, window_seconds: 8640000}\n";
    rules.replace(users).unwrap();
    let app = app(&rules);
    let long = "x".repeat(5000);
    for user in ["u1", "{", "", &long] {
        assert_eq!(status(&app, "GET", "/", user).await, 200, "{user}");
        assert_eq!(status(&app, "GET", "/", user).await, 429, "{user}");
    }
}

#[tokio::test]
async fn costs_and_responses_are_those_of_the_service() {
    let rules = RuleSet::in_memory();
    rules
        .replace("- {name: 'size \"é\"', per: [path], limit: 10, window_seconds: 8640000}")
        .unwrap();
    let layer = RuleLayer::new(&rules, extractors())
        .unwrap()
        .cost(|head| head.uri.query().and_then(|query| query.parse().ok()).unwrap_or(1))
        .respond_with(|denial| {
            let mut response = Response::new(Body::from(denial.class().to_owned()));
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            response
        });
    let app: Router = Router::new().fallback(any(async || "hello")).layer(layer);
    assert_eq!(status(&app, "GET", "/?9", "u").await, 200);
    assert_eq!(status(&app, "GET", "/?0", "u").await, 200);
    let denied = send(&app, request("GET", "/?1", "u")).await;
    assert_eq!(denied.status(), 503);
    assert_eq!(denied.into_body().collect().await.unwrap().to_bytes(), "size ");
    // More than the limit can never be admitted.
    assert_eq!(status(&app, "GET", "/other?11", "u").await, 503);
}

#[tokio::test]
async fn invalid_rules_and_extractors_are_refused_with_all_problems() {
    let rules = RuleSet::in_memory();
    rules.replace(RULES).unwrap();
    let error = rules.replace("- {name: a, limit: 0, window_seconds: x, wen: {}}").unwrap_err();
    assert!(error.to_string().contains("rules[0].wen (rules:1): unknown key"), "{error}");
    let error = rules.replace("- {name: a, per: [x], limit: 0, window_seconds: x}").unwrap_err();
    for expected in ["rules[0].limit (rules:1): ", "rules[0].window_seconds (rules:1): "] {
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert_eq!(rules.len(), 1);
    for extractors in [Extractors::new().path("a b"), Extractors::new().path("a").method("a")] {
        assert!(RuleLayer::new(&rules, extractors).is_err());
    }
}

/// Polls until `condition` holds.
async fn eventually(mut condition: impl AsyncFnMut() -> bool) {
    let held = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), held).await.expect("the condition to hold");
}

#[tokio::test]
async fn a_file_is_read_again_when_it_changes_and_the_last_valid_rules_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rules.yaml");
    let rules = RuleSet::in_memory();
    let missing = RulesFile::load(&path, &rules).unwrap_err().to_string();
    assert!(missing.starts_with(&format!("cannot read {}", path.display())), "{missing}");
    fs::write(&path, RULES).unwrap();
    let file = RulesFile::load(&path, &rules).unwrap();
    let watch = tokio::spawn(file.watch(Duration::from_millis(5)));
    let app = app(&rules);
    assert_eq!(status(&app, "POST", "/v1/a", "u1").await, 200);
    assert_eq!(status(&app, "POST", "/v1/a", "u1").await, 200);
    assert_eq!(status(&app, "POST", "/v1/a", "u1").await, 429);

    // A higher limit keeps what was counted.
    fs::write(&path, RULES.replace("limit: 2", "limit: 3")).unwrap();
    eventually(async || status(&app, "POST", "/v1/a", "u1").await == 200).await;
    assert_eq!(status(&app, "POST", "/v1/a", "u1").await, 429);

    let more = format!("{RULES}  - {{name: more, limit: 9, per: [path], window_seconds: 9}}\n");
    fs::write(&path, "rules: [").unwrap();
    fs::write(&path, RULES.replace("limit: 2", "limit: -2")).unwrap();
    assert_eq!(status(&app, "POST", "/v1/a", "u1").await, 429);
    fs::write(&path, more).unwrap();
    eventually(async || rules.len() == 2).await;
    watch.abort();
}

#[tokio::test]
async fn processes_with_the_same_file_count_together_on_redis() {
    let redis = require!(Redis::start());
    let store = || {
        let config = headgate_store_redis::RedisConfig::from_url(&redis.url()).unwrap();
        // A busy machine is not an outage.
        let patience = Duration::from_secs(30);
        let config = config.timeout(patience).connect_timeout(patience);
        Arc::new(headgate_store_redis::RedisStore::connect(config))
    };
    let app = || {
        let rules = RuleSet::shared(store(), NonZeroU32::MIN);
        rules.replace(RULES).unwrap();
        app(&rules)
    };
    let (one, two) = (app(), app());
    assert_eq!(status(&one, "POST", "/v1/a", "u1").await, 200);
    assert_eq!(status(&two, "POST", "/v1/a", "u1").await, 200);
    assert_eq!(status(&one, "POST", "/v1/a", "u1").await, 429);
    redis.kill();
    let log = CapturedLog::start("headgate_guard_rules=warn");
    // Each process enforces the limit by itself.
    assert_eq!(status(&two, "POST", "/v1/a", "u2").await, 200);
    assert_eq!(status(&two, "POST", "/v1/a", "u3").await, 200);
    let text = log.text();
    let warning = "store failed to decide requests by rules; fail mode local answers";
    assert_eq!(text.matches(warning).count(), 1, "{text}");
    assert!(text.contains("reason=\"unavailable\""), "{text}");
}

#[path = "../../examples/guard_rules.rs"]
#[expect(dead_code, reason = "its main function is not called")]
mod example;

/// The guide quotes the example, and its rules decide.
#[tokio::test]
async fn the_guide_shows_the_example() {
    const GUIDE: &str = include_str!("../../../../docs/guides/protect-an-axum-service.md");
    const EXAMPLE: &str = include_str!("../../examples/guard_rules.rs");
    let without_indent =
        |text: &str| -> String { text.lines().map(str::trim).collect::<Vec<_>>().join("\n") };
    let quotes = GUIDE.split("```rust\n// crates/guard-rules/examples/guard_rules.rs\n").skip(1);
    let quotes: Vec<&str> = quotes.filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(quotes.len(), 2);
    for quote in quotes {
        let quote = without_indent(quote.trim());
        assert!(without_indent(EXAMPLE).contains(&quote), "not in the example:\n{quote}");
    }
    let yaml = GUIDE.split("```yaml\n# rules.yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let rules = RuleSet::in_memory();
    // With a longer window, of which nothing refills while the test runs.
    assert!(yaml.contains("window_seconds: 60\n"), "{yaml}");
    rules.replace(&yaml.replace("window_seconds: 60\n", "window_seconds: 8640000\n")).unwrap();
    let app = example::router(&rules).unwrap();
    let get = || {
        let peer = ConnectInfo(SocketAddr::from(([203, 0, 113, 7], 4000)));
        let request = Request::get("/v1/exports").header("x-tenant", "acme").extension(peer);
        request.body(Body::empty()).unwrap()
    };
    for _ in 0..10 {
        assert_eq!(send(&app, get()).await.status(), 200);
    }
    assert_eq!(send(&app, get()).await.status(), 429);
}
