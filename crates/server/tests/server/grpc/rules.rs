//! `CreateRule`, `GetRule`, `ListRules`, `UpdateRule` and `DeleteRule`

use tonic::Code;

use super::client::{
    Client, CreateRuleRequest, DeleteRuleRequest, FOREVER, GetRuleRequest, ListRulesRequest,
    Pagination, RateLimitRule, UpdateRuleRequest, assert_error, assert_invalid, by, connect,
    create, rule_of,
};
use crate::{
    backend::{Backend, on_both_backends},
    harness::Server,
};

on_both_backends!(
    a_rule_is_its_key_and_its_numbers,
    a_rule_has_all_fields_it_was_created_with,
    all_problems_of_a_rule_are_reported_at_once,
    the_same_rule_exists_once,
    an_update_keeps_what_was_left_out,
    a_deleted_rule_is_gone,
    rules_are_listed_by_pages,
);

async fn start(backend: &Backend) -> (Server, Client, String) {
    let server = backend.serve(&[]).await;
    let client = connect(server.grpc_address).await;
    let token = server.admin_token.clone().unwrap();
    (server, client, token)
}

async fn get(client: &Client, token: &str, id: &str) -> Result<RateLimitRule, tonic::Status> {
    let request = GetRuleRequest { rule_id: id.to_owned() };
    let answer = client.clone().get_rule(by(token, request)).await?;
    Ok(answer.into_inner().rule.expect("a rule"))
}

async fn list(client: &Client, token: &str, wanted: ListRulesRequest) -> (Vec<String>, Pagination) {
    let answer = client.clone().list_rules(by(token, wanted)).await.unwrap().into_inner();
    let keys = answer.rules.into_iter().map(|rule| rule.key).collect();
    (keys, answer.pagination.expect("a pagination"))
}

async fn a_rule_is_its_key_and_its_numbers(backend: &Backend) {
    let (_server, client, token) = start(backend).await;
    let made = create(&client, &token, rule_of("endpoint:/api:v1/*")).await;
    let expected = RateLimitRule {
        id: made.id.clone(),
        name: "endpoint:/api:v1/*".to_owned(),
        key: "endpoint:/api:v1/*".to_owned(),
        limit: 5,
        window_secs: FOREVER,
        algorithm: "token_bucket".to_owned(),
        enabled: true,
        created_at: made.created_at,
        scope: "endpoint".to_owned(),
        identifier_pattern: "/api:v1/*".to_owned(),
        updated_at: made.created_at,
        burst: 0,
        fail_mode: String::new(),
        selector: None,
        lease: None,
    };
    assert_eq!(made, expected);
    assert!(made.created_at.unwrap().seconds > 1_700_000_000);
    assert_eq!(get(&client, &token, &made.id).await.unwrap(), made);
}

async fn a_rule_has_all_fields_it_was_created_with(backend: &Backend) {
    let (server, client, token) = start(backend).await;
    let full = CreateRuleRequest {
        name: "the whole staff".to_owned(),
        window_secs: 3600,
        algorithm: "leaky_bucket".to_owned(),
        burst: 9,
        fail_mode: "closed".to_owned(),
        enabled: Some(false),
        ..rule_of("user:staff-*")
    };
    let made = create(&client, &token, full).await;
    assert_eq!(made.name, "the whole staff");
    assert_eq!((made.algorithm.as_str(), made.burst), ("leaky_bucket", 9));
    assert_eq!((made.fail_mode.as_str(), made.enabled), ("closed", false));

    // REST shows the same rule.
    let path = format!("/api/v1/ratelimit/rules/{}", made.id);
    let shown = server.admin("GET", &path, "").await.json();
    assert_eq!(shown["name"], "the whole staff");
    assert_eq!(shown["algorithm"], "leaky_bucket");
    assert_eq!(shown["identifier_pattern"], "staff-*");
}

async fn all_problems_of_a_rule_are_reported_at_once(backend: &Backend) {
    let (_server, client, token) = start(backend).await;
    let numbers = [
        ("limit", "limit must be greater than 0"),
        ("window_secs", "window_seconds must be greater than 0"),
    ];
    let cases: [(CreateRuleRequest, &[(&str, &str)]); 4] = [
        (CreateRuleRequest::default(), &[("key", "key is required"), numbers[0], numbers[1]]),
        (
            CreateRuleRequest {
                key: "user".into(),
                limit: -1,
                window_secs: -1,
                ..Default::default()
            },
            &[
                ("key", "key must be written like scope:identifier_pattern, such as user:*"),
                numbers[0],
                numbers[1],
            ],
        ),
        (
            CreateRuleRequest { key: "planet:a*b".into(), ..Default::default() },
            &[
                ("key", "scope must be one of: service, user, endpoint"),
                ("key", "identifier_pattern may have a * only at its end"),
                numbers[0],
                numbers[1],
            ],
        ),
        (
            CreateRuleRequest {
                algorithm: "guess".into(),
                burst: -1,
                fail_mode: "maybe".into(),
                limit: i64::MAX,
                ..rule_of("user:*")
            },
            &[
                ("limit", "limit must be at most 4294967295"),
                (
                    "algorithm",
                    "algorithm must be one of: token_bucket, sliding_window, sliding_window_counter, fixed_window, leaky_bucket, concurrency",
                ),
                ("burst", "burst must be greater than 0"),
                ("fail_mode", "fail_mode must be one of: capped, open, closed, local"),
            ],
        ),
    ];
    for (rule, fields) in cases {
        let status = client.clone().create_rule(by(&token, rule)).await.unwrap_err();
        assert_invalid(&status, fields);
    }
}

async fn the_same_rule_exists_once(backend: &Backend) {
    let (_server, client, token) = start(backend).await;
    create(&client, &token, rule_of("user:u1")).await;
    let status = client.clone().create_rule(by(&token, rule_of("user:u1"))).await.unwrap_err();
    let message = "a rule for user:u1 with a window of 31000000 seconds already exists";
    assert_error(&status, Code::AlreadyExists, "SYS_RATELIMIT_RULE_EXISTS", message);
    let other = CreateRuleRequest { window_secs: 60, ..rule_of("user:u1") };
    create(&client, &token, other).await;
}

async fn an_update_keeps_what_was_left_out(backend: &Backend) {
    let (_server, client, token) = start(backend).await;
    let full = CreateRuleRequest {
        name: "old".into(),
        window_secs: 3600,
        burst: 9,
        fail_mode: "local".into(),
        ..rule_of("user:u1")
    };
    let made = create(&client, &token, full).await;
    let change = UpdateRuleRequest {
        rule_id: made.id.clone(),
        key: "user:u2".into(),
        limit: 6,
        window_secs: 60,
        ..UpdateRuleRequest::default()
    };
    let update = |change| async {
        let answer = client.clone().update_rule(by(&token, change)).await;
        answer.map(|answer| answer.into_inner().rule.unwrap())
    };
    let changed = update(change.clone()).await.unwrap();
    assert_eq!((changed.key.as_str(), changed.limit, changed.window_secs), ("user:u2", 6, 60));
    assert_eq!((changed.name.as_str(), changed.burst), ("old", 9));
    assert_eq!((changed.fail_mode.as_str(), changed.created_at), ("local", made.created_at));

    let dropping = UpdateRuleRequest {
        name: Some(String::new()),
        burst: Some(0),
        fail_mode: Some(String::new()),
        enabled: Some(false),
        ..change.clone()
    };
    let dropped = update(dropping).await.unwrap();
    assert_eq!((dropped.name.as_str(), dropped.burst, dropped.enabled), ("user:u2", 0, false));
    assert_eq!(get(&client, &token, &made.id).await.unwrap(), dropped);

    let wrong = UpdateRuleRequest { key: String::new(), limit: 0, ..change };
    let fields = [("key", "key is required"), ("limit", "limit must be greater than 0")];
    assert_invalid(&update(wrong).await.unwrap_err(), &fields);
}

async fn a_deleted_rule_is_gone(backend: &Backend) {
    let (_server, client, token) = start(backend).await;
    let made = create(&client, &token, rule_of("user:u1")).await;
    let delete = |rule_id: String| {
        let mut client = client.clone();
        let request = by(&token, DeleteRuleRequest { rule_id });
        async move { client.delete_rule(request).await }
    };
    assert!(delete(made.id.clone()).await.unwrap().into_inner().success);
    let message = format!("rule not found: {}", made.id);
    for status in [
        delete(made.id.clone()).await.unwrap_err(),
        get(&client, &token, &made.id).await.unwrap_err(),
    ] {
        assert_error(&status, Code::NotFound, "SYS_RATELIMIT_RULE_NOT_FOUND", &message);
    }
    let empty = delete(String::new()).await.unwrap_err();
    assert_invalid(&empty, &[("rule_id", "rule_id is required")]);
}

async fn rules_are_listed_by_pages(backend: &Backend) {
    let (_server, client, token) = start(backend).await;
    for key in ["user:a", "user:b", "user:c", "service:d"] {
        create(&client, &token, rule_of(key)).await;
    }
    let disabled = CreateRuleRequest { enabled: Some(false), ..rule_of("user:e") };
    create(&client, &token, disabled).await;

    let (keys, pagination) = list(&client, &token, ListRulesRequest::default()).await;
    assert_eq!(keys.len(), 5);
    let all = Pagination { total_count: 5, page: 1, page_size: 20, has_next: false };
    assert_eq!(pagination, all);

    let users = ListRulesRequest { scope: "user".into(), enabled_only: true, ..Default::default() };
    let (first, pagination) =
        list(&client, &token, ListRulesRequest { page_size: 2, ..users.clone() }).await;
    assert_eq!(pagination, Pagination { total_count: 3, page: 1, page_size: 2, has_next: true });
    let (second, pagination) =
        list(&client, &token, ListRulesRequest { page: 2, page_size: 2, ..users }).await;
    assert_eq!(pagination, Pagination { total_count: 3, page: 2, page_size: 2, has_next: false });
    let mut seen = [first, second].concat();
    seen.sort();
    assert_eq!(seen, ["user:a", "user:b", "user:c"]);

    let wrong =
        ListRulesRequest { page: -1, page_size: 101, scope: "planet".into(), ..Default::default() };
    let status = client.clone().list_rules(by(&token, wrong)).await.unwrap_err();
    let fields = [
        ("scope", "scope must be one of: service, user, endpoint, attributes"),
        ("page", "page must be at least 1"),
        ("page_size", "page_size must be between 1 and 100"),
    ];
    assert_invalid(&status, &fields);
}
