//! Settings of all domains.

use std::slice;

use super::{
    DOMAINS,
    client::{Client, of, taking},
    counted, metric, start, start_with,
};

#[tokio::test]
async fn a_denied_request_takes_nothing_unless_denials_consume() {
    let both = [of(&[("campaign", "newsletter"), ("mailbox", "m1")]), of(&[("mailbox", "m1")])];
    for (denied, left) in [("none", [3, 2, 2, 2]), ("all", [3, 2, 1, 0])] {
        let server = start(&[("envoy.denied_consumes", denied)]).await;
        let client = Client::connect(server.grpc_address).await;
        for left in left {
            assert_eq!(client.ask("mail", &both).await.each()[1].1, left, "{denied}");
        }
    }
}

#[tokio::test]
async fn a_charge_that_does_not_fit_uses_up_what_is_left_if_denials_consume() {
    let (look, charge) = (taking(0, &[("mailbox", "m1")]), taking(3, &[("mailbox", "m1")]));
    for (denied, after) in [("none", (false, 1)), ("all", (true, 0))] {
        let server = start(&[("envoy.denied_consumes", denied)]).await;
        let client = Client::connect(server.grpc_address).await;
        let ask = async |it| client.ask("mail", slice::from_ref(it)).await.each()[0];
        assert_eq!(ask(&charge).await, (false, 1), "{denied}");
        assert_eq!(ask(&look).await, (false, 1), "{denied}");
        assert_eq!(ask(&charge).await, (true, after.1), "{denied}");
        assert_eq!(ask(&look).await, after, "{denied}");
    }
}

#[tokio::test]
async fn a_charge_above_the_whole_limit_uses_up_what_is_left_if_denials_consume() {
    let (look, charge) = (taking(0, &[("path", "/a")]), taking(150, &[("path", "/a")]));
    for (denied, after) in [("none", (false, 100)), ("all", (true, 0))] {
        let server = start(&[("envoy.denied_consumes", denied)]).await;
        let client = Client::connect(server.grpc_address).await;
        let ask = async |it| client.ask("edge", slice::from_ref(it)).await.each()[0];
        assert_eq!(ask(&look).await, (false, 100), "{denied}");
        assert_eq!(ask(&charge).await, (true, after.1), "{denied}");
        assert_eq!(ask(&look).await, after, "{denied}");
        assert_eq!(ask(&charge).await, (true, after.1), "{denied}");
    }
}

#[tokio::test]
async fn limits_in_quota_mode_deny_only_together() {
    let server = start(&[("envoy.quota_mode", "true")]).await;
    let client = Client::connect(server.grpc_address).await;
    let (mail, path) = (of(&[("mailbox", "m1")]), of(&[("address", "192.0.2.1")]));
    let banned = of(&[("address", "203.0.113.9")]);
    assert!(client.ask("edge", slice::from_ref(&banned)).await.is_over());
    let answer = client.ask("edge", &[banned.clone(), path.clone()]).await;
    assert_eq!((answer.is_over(), answer.each()), (false, vec![(true, 0), (false, 2)]));
    // A descriptor without a limit has room, too.
    assert!(!client.ask("edge", &[banned.clone(), of(&[("nothing", "x")])]).await.is_over());
    // An unlimited rate is not a quota.
    assert!(client.ask("edge", &[banned, of(&[("partner", "p")])]).await.is_over());
    assert!(!client.ask("mail", &[mail]).await.is_over());
}

#[tokio::test]
async fn shadow_mode_admits_everything_and_counts_denials() {
    let server = start(&[("envoy.shadow_mode", "true")]).await;
    let client = Client::connect(server.grpc_address).await;
    for _ in 0..3 {
        let answer = client.ask("edge", &[of(&[("address", "203.0.113.9")])]).await;
        // The request passes; the status of its descriptor shows the denial.
        assert_eq!((answer.is_over(), answer.each()), (false, vec![(true, 0)]));
        assert_eq!(answer.header("retry-after"), None);
    }
    let number = counted("edge", "address_203.0.113.9", "shadow_mode");
    assert_eq!(metric(&server, &number).await, Some(3));
    assert_eq!(metric(&server, "headgate_envoy_requests_total{outcome=\"allowed\"").await, Some(3));
}

#[tokio::test]
async fn response_headers_are_the_configured_ones() {
    for (wanted, retry, limit) in [
        ("default", false, false),
        ("none", false, false),
        ("retry_after", true, false),
        ("all", true, true),
    ] {
        let keys = [("envoy.response_headers", wanted)];
        let keys = if wanted == "default" { &[][..] } else { &keys };
        let server = start_with(DOMAINS, keys).await;
        let client = Client::connect(server.grpc_address).await;
        let user = [of(&[("service", "auth"), ("user", "paying")]), of(&[("path", "/a")])];
        let answer = client.ask("edge", &user).await;
        assert_eq!(answer.header("retry-after"), None, "{wanted}");
        assert_eq!(answer.header("x-ratelimit-remaining"), limit.then_some("1"), "{wanted}");
        client.ask("edge", &user).await;
        let answer = client.ask("edge", &user).await;
        assert_eq!(answer.header("retry-after").is_some(), retry, "{wanted}");
        assert_eq!(answer.header("x-ratelimit-limit"), limit.then_some("2"), "{wanted}");
        assert_eq!(answer.header("x-ratelimit-remaining"), limit.then_some("0"), "{wanted}");
        assert_eq!(answer.header("x-ratelimit-reset").is_some(), limit, "{wanted}");
    }
}

#[tokio::test]
async fn draft_version_03_lists_the_windows_of_all_limits() {
    let server = start(&[("envoy.response_headers", "draft_version_03")]).await;
    let client = Client::connect(server.grpc_address).await;
    let user = [
        of(&[("path", "/a")]),
        of(&[("service", "auth"), ("user", "paying")]),
        of(&[("unknown", "x")]),
    ];
    for remaining in ["1", "0", "0"] {
        let answer = client.ask("edge", &user).await;
        let limits = "2, 2;w=31536000, 100;w=31536000";
        assert_eq!(answer.header("x-ratelimit-limit"), Some(limits));
        assert_eq!(answer.header("x-ratelimit-remaining"), Some(remaining));
        assert!(answer.header("x-ratelimit-reset").is_some());
        assert_eq!(answer.header("retry-after"), None);
    }
    let answer = client.ask("edge", &[of(&[("unknown", "x")])]).await;
    assert_eq!(answer.header("x-ratelimit-limit"), None);
}

#[tokio::test]
async fn the_failure_policy_decides_without_the_store() {
    let redis = ("redis.url", "redis://127.0.0.1:1");
    // Nothing listens there; on a busy machine that must not count as a timeout.
    let patient = ("redis.timeout_ms", "30000");
    for (keys, over) in [
        (&[redis][..], false),
        (&[redis, ("ratelimit.fail_open", "false")], true),
        (&[redis, ("ratelimit.fail_open", "false"), ("envoy.fail_mode", "open")], false),
        (&[redis, ("envoy.fail_mode", "closed")], true),
        (&[redis, ("ratelimit.fail_open", "false"), ("envoy.fail_mode", "capped")], false),
    ] {
        let server = start(&[keys, &[patient]].concat()).await;
        let client = Client::connect(server.grpc_address).await;
        let answer = client.ask("mail", &[of(&[("mailbox", "m1")])]).await;
        assert_eq!(answer.is_over(), over, "{keys:?}");
        let banned = [of(&[("address", "203.0.113.9")])];
        assert!(client.ask("edge", &banned).await.is_over(), "{keys:?}");
        let degraded = r#"headgate_envoy_degraded_requests_total{reason="unavailable""#;
        assert_eq!(metric(&server, degraded).await, Some(2));
    }
    // Also by default: at most the whole limit of each counter.
    for keys in [&[redis][..], &[redis, ("envoy.fail_mode", "local")]] {
        let server = start(keys).await;
        let client = Client::connect(server.grpc_address).await;
        let mailbox = [of(&[("mailbox", "m1")])];
        for over in [false, false, false, false, true] {
            assert_eq!(client.ask("mail", &mailbox).await.is_over(), over, "{keys:?}");
        }
    }
}

#[tokio::test]
async fn metrics_contain_values_only_where_configured() {
    let server = start(&[]).await;
    let client = Client::connect(server.grpc_address).await;
    for descriptor in [
        of(&[("plain", "secret-1")]),
        of(&[("wild", "api-secret-2")]),
        of(&[("shown", "seen")]),
        of(&[("route", "r1"), ("subject", "secret-3")]),
        of(&[("unknown", "secret-4")]),
    ] {
        assert!(!client.ask("metrics", &[descriptor]).await.is_over());
    }
    client.ask("secret-5", &[of(&[("plain", "secret-1")])]).await;
    for rule in ["plain", "wild_api-*", "shown_seen", "route_r1.subject"] {
        let number = counted("metrics", rule, "within_limit");
        assert_eq!(metric(&server, &number).await, Some(1), "{rule}");
    }
    let unmatched = metric(&server, "headgate_envoy_unmatched_descriptors_total").await;
    assert_eq!(unmatched, Some(2));
    assert!(!server.get("/metrics").await.text.contains("secret"));

    // The number of labels is bounded.
    for value in 0..1005 {
        client.ask("metrics", &[of(&[("shown", &value.to_string())])]).await;
    }
    client.ask("metrics", &[of(&[("shown", &"x".repeat(300))])]).await;
    let text = server.get("/metrics").await.text;
    let names =
        text.lines().filter(|line| line.contains("rule=\"shown_") && line.contains("within"));
    assert_eq!(names.count(), 999);
    assert_eq!(metric(&server, &counted("metrics", "other", "within_limit")).await, Some(8));
}
