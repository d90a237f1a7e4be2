//! Every live key is in force after a reload.

use headgate_testkit::{Issuer, free_port};

use super::*;

/// A Redis that does not answer: the failure mode decides.
fn without_redis(rest: &str) -> String {
    format!("redis: {{url: 'redis://127.0.0.1:1', connect_timeout_seconds: 1}}\n{rest}")
}

fn check_user(server: &Reloadable, user: &str) -> Value {
    let body = json!({"scope": "user", "identifier": user}).to_string();
    super::body(&http(&server.server, "POST /api/v1/ratelimit/check", &[], &body))
}

fn check_key(server: &Reloadable, query: &str, headers: &[&str]) -> String {
    http(&server.server, &format!("POST /api/v1/rate-limit/check?{query}"), headers, "")
}

#[test]
fn log_level() {
    let server = Reloadable::start("");
    http(&server.server, "GET /healthz", &["x-request-id: before"], "");
    server.reload("observability: {log: {level: debug}}\n");
    http(&server.server, "GET /healthz", &["x-request-id: while-debugging"], "");
    server.reload("observability: {log: {level: info}}\n");
    http(&server.server, "GET /healthz", &["x-request-id: after"], "");
    let log = server.server.log();
    let answered = |id: &str| log.contains(&format!("answered {id}"));
    let seen = [answered("before"), answered("while-debugging"), answered("after")];
    assert_eq!(seen, [false, true, false], "{log}");
}

#[test]
fn limits_of_every_algorithm_the_default_algorithm_and_overrides() {
    let server = Reloadable::start("");
    server.reload(
        "rate_limiter:\n  algorithm: FIXED_WINDOW\n  token_bucket: {capacity: 11}\n  \
         sliding_window: {max_requests: 12}\n  sliding_window_counter: {max_requests: 13}\n  \
         fixed_window: {max_requests: 14}\n  leaky_bucket: {capacity: 15}\n  \
         overrides: [{prefix: 'gold:', fixed_window: {max_requests: 16}}]\n",
    );
    for (query, expected) in [
        ("key=a&algorithm=TOKEN_BUCKET", 11),
        ("key=a&algorithm=SLIDING_WINDOW", 12),
        ("key=a&algorithm=SLIDING_WINDOW_COUNTER", 13),
        ("key=a&algorithm=FIXED_WINDOW", 14),
        ("key=a&algorithm=LEAKY_BUCKET", 15),
        ("key=a", 14),
        ("key=gold:a", 16),
    ] {
        assert_eq!(server.remaining(query), expected, "{query}");
    }
}

#[test]
fn failure_modes_of_keys_and_of_rules() {
    let server = Reloadable::start(&without_redis(""));
    assert_eq!(status(&check_key(&server, "key=a", &[])), 200);
    server.reload(&without_redis("rate_limiter: {fail_mode: closed}\n"));
    assert_eq!(status(&check_key(&server, "key=a", &[])), 429);
    assert_eq!(check_user(&server, "u1")["allowed"], true);
    server.reload(&without_redis("ratelimit: {fail_open: false}\n"));
    assert_eq!(check_user(&server, "u1")["allowed"], false);
    assert_eq!(status(&check_key(&server, "key=a", &[])), 200);
}

#[test]
fn failure_mode_of_a_rule_that_sets_none() {
    let server = Reloadable::start(&without_redis(""));
    let rule = ["rules", "create", "--scope", "user", "--pattern", "u1", "--limit", "5"];
    printed(&server.server.run(&[&rule[..], &["--window", "1h"]].concat()));
    assert_eq!(check_user(&server, "u1")["allowed"], true);
    server.reload(&without_redis("ratelimit: {fail_open: false}\n"));
    assert_eq!(check_user(&server, "u1")["allowed"], false);
}

#[test]
fn leases_of_rules_and_of_the_default_rule() {
    let server = Reloadable::start("");
    let rule = ["rules", "create", "--scope", "user", "--pattern", "u1", "--limit", "500"];
    printed(&server.server.run(&[&rule[..], &["--window", "1s"]].concat()));
    let lease = |user: &str| {
        let explained = server.server.json(&["explain", "user", user]);
        let rules = explained["rules"].as_array().unwrap().clone();
        rules.iter().find(|rule| rule["applies"] == true).unwrap().get("lease").cloned()
    };
    assert_eq!((lease("u1"), lease("u2")), (None, None));
    server.reload("ratelimit: {lease: 10%/200ms}\n");
    let leased = |hold: u64| Some(json!({"share_percent": 10, "hold_ms": hold}));
    assert_eq!((lease("u1"), lease("u2")), (leased(100), leased(200)), "a tenth of the window");
    server.reload("ratelimit: {lease: off}\n");
    assert_eq!((lease("u1"), lease("u2")), (None, None));
}

#[test]
fn default_rule() {
    let server = Reloadable::start("ratelimit: {default_limit: 5, default_window_seconds: 3600}\n");
    assert_eq!(check_user(&server, "u1")["remaining"], 4);
    server.reload("ratelimit: {default_limit: 9, default_window_seconds: 3600}\n");
    assert_eq!(check_user(&server, "u1")["remaining"], 7, "one was used before");
    server.reload("ratelimit: {default_limit: 9, default_window_seconds: 7200}\n");
    assert_eq!(check_user(&server, "u1")["remaining"], 8, "another window");
}

#[test]
fn replicas() {
    let local = |replicas: u32| {
        without_redis(&format!(
            "ratelimit: {{replicas: {replicas}}}\nrate_limiter:\n  fail_mode: local\n  \
             sliding_window: {{max_requests: 100, window_size: 1h}}\n"
        ))
    };
    let server = Reloadable::start(&local(1));
    assert_eq!(server.check("a", &[])["remaining"], 99);
    server.reload(&local(4));
    assert_eq!(server.check("b", &[])["remaining"], 24);
}

#[test]
fn addresses_of_clients() {
    let server = Reloadable::start("");
    let key = |headers: &[&str]| server.check("", headers)["key"].as_str().unwrap().to_owned();
    let forwarded = "x-forwarded-for: 192.0.2.7";
    assert_eq!(key(&[forwarded]), "ip:127.0.0.1");
    server.reload("server: {trusted_proxies: [127.0.0.1]}\n");
    assert_eq!(key(&[forwarded]), "ip:192.0.2.7");
    server.reload("server: {trusted_proxies: [127.0.0.1], forwarded_by: x_real_ip}\n");
    assert_eq!(key(&[forwarded, "x-real-ip: 192.0.2.8"]), "ip:192.0.2.8");
    let six = "x-forwarded-for: 2001:db8:1:2:3::4";
    server.reload("server: {trusted_proxies: [127.0.0.1]}\n");
    assert_eq!(key(&[six]), "ip:2001:db8:1:2::/64");
    server.reload("server: {trusted_proxies: [127.0.0.1], ipv6_prefix_length: 48}\n");
    assert_eq!(key(&[six]), "ip:2001:db8:1::/48");
}

#[test]
fn request_timeout() {
    let server = Reloadable::start("server: {request_timeout_seconds: 3600}\n");
    server.reload("server: {request_timeout_seconds: 1}\n");
    let address = server.server.url().trim_start_matches("http://");
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    // The body never comes.
    let head = "POST /api/v1/ratelimit/check HTTP/1.1\r\nhost: here\r\n\
                content-type: application/json\r\ncontent-length: 9\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut stream, &mut answer).unwrap();
    assert_eq!(status(&answer), 408, "{answer}");
}

#[test]
fn shutdown_delay() {
    let server = Reloadable::start("server: {shutdown_delay_seconds: 3600}\n");
    server.reload("server: {shutdown_delay_seconds: 0}\n");
    assert_eq!(server.server.signal("-TERM").code(), Some(0));
}

#[test]
fn interval_of_reading_rules() {
    let folder = tempfile::tempdir().unwrap();
    let yaml = |seconds: u32| {
        format!(
            "database: {{url: 'sqlite://{}/rules.db'}}\n\
             ratelimit: {{refresh_interval_seconds: {seconds}}}\n",
            folder.path().display()
        )
    };
    let (reader, writer) = (Reloadable::start(&yaml(3600)), Reloadable::start(&yaml(3600)));
    let rule = ["rules", "create", "--scope", "user", "--pattern", "u1", "--limit", "5"];
    printed(&writer.server.run(&[&rule[..], &["--window", "1h"]].concat()));
    assert_eq!(check_user(&reader, "u1")["limit"], 100);
    reader.reload(&yaml(1));
    assert!(wait_until(LIMIT, || check_user(&reader, "u1")["limit"] == 5));
}

#[test]
fn issuer_of_jwts() {
    let issuer = Issuer::start();
    let token = issuer.token_for("sys_auditor");
    let header = format!("authorization: Bearer {token}");
    let server = Reloadable::start("");
    let rules = || status(&http(&server.server, "GET /api/v1/ratelimit/rules", &[&header], ""));
    assert_eq!(rules(), 401);
    // The admin token is of no use once another way to authenticate is configured.
    let root = "tokens: [{name: root, role: sys_admin, token: root-secret-0123456789}]";
    let reload = |yaml: &str| {
        server.write(yaml);
        let token = ["--token", "root-secret-0123456789"];
        printed(&server.server.run(&[&["config", "reload"][..], &token].concat()));
    };
    server.reload(&format!("auth: {{{root}, jwks_url: '{}'}}\n", issuer.url()));
    // The server gives up on the issuer's keys after two seconds, and fetches them again.
    assert!(wait_until(LIMIT, || rules() == 200));
    reload(&format!("auth: {{{root}, jwks_url: '{}', audience: others}}\n", issuer.url()));
    assert!(wait_until(LIMIT, || rules() == 401));
    let console =
        || super::body(&http(&server.server, "GET /console/session", &[], ""))["oidc"].clone();
    assert_eq!(console(), false);
    reload(&format!(
        "auth: {{{root}, jwks_url: '{}', issuer: 'http://127.0.0.1:{}'}}\n\
         console: {{oidc: {{client_id: console}}}}\n",
        issuer.url(),
        free_port()
    ));
    assert_eq!(console(), true);
}
