use headgate_service_config::{Document, Invalid, LoadError, document::read, kinds::MAX_BYTES};
use serde_json::{Value, json};

use super::{user_api::DailyQuotas, *};

fn validate(service: &str, config: &Value) -> Result<(), Invalid> {
    kinds().validate(service, config)
}

fn problems(service: &str, config: &Value) -> Vec<(String, String)> {
    match validate(service, config) {
        Err(Invalid::Fields(problems)) => {
            problems.into_iter().map(|problem| (problem.pointer, problem.message)).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_empty_document_has_the_defaults() {
    let relay: RelayDocument = read(&json!({})).unwrap();
    assert_eq!(relay, RelayDocument::default());
    assert_eq!(relay.auth, AuthSettings::OFF);
    assert_eq!((relay.auth.grace_seconds, relay.auth.ws_auth_timeout_seconds), (900, 10));
    assert_eq!((relay.limits.max_event_bytes, relay.limits.max_tags), (32_768, 200));
    let ws = relay.rate_limit.ws;
    assert_eq!((ws.events(), ws.reqs(), ws.connections()), ((120, 120), (60, 60), 30));
    assert_eq!(relay.rate_limit.gossip.per_peer(), 600);
    assert_eq!((relay.rate_limit.enabled, relay.max_concurrent_topics), (true, 100));

    let users: UserApiDocument = read(&json!({})).unwrap();
    let rates = users.rate_limit;
    assert_eq!((rates.auth_per_minute, rates.public_per_minute), (20, 120));
    assert_eq!((rates.protected(), users.quota), ((120, 120), DailyQuotas::FREE));
    assert_eq!(users.max_pending_per_pubkey, 5);

    let bootstrap: BootstrapDocument = read(&json!({})).unwrap();
    assert_eq!((bootstrap.auth, bootstrap.descriptor), (AuthSettings::OFF, None));
}

#[test]
fn narrower_settings_override_wider_ones() {
    let relay: RelayDocument = read(&json!({
        "auth": {"mode": "required", "enforce_at": 1_700_000_000, "grace_seconds": 60},
        "rate_limit": {
            "ws": {"events_per_minute": 10, "event_by_pubkey": 5, "req_by_ip": 7, "conn_by_ip": 3},
            "iroh": {"by_peer": 8, "global": 9},
            "enabled": false,
        },
        "retention": {"days": 30},
    }))
    .unwrap();
    assert_eq!(relay.auth.mode, AuthMode::Required);
    assert!(!relay.auth.is_enforced(1_699_999_999) && relay.auth.is_enforced(1_700_000_000));
    assert_eq!(relay.auth.deadline(), Some(1_700_000_060));
    let rates = relay.rate_limit;
    assert_eq!((rates.ws.events(), rates.ws.reqs()), ((10, 5), (7, 60)));
    assert_eq!((rates.ws.connections(), rates.gossip.per_peer(), rates.gossip.global), (3, 8, 9));
    assert!(!rates.enabled);

    let users: UserApiDocument = read(&json!({
        "rate_limit": {"per_minute": 50, "public_per_minute": 40, "http": {"by_pubkey": 30}},
        "quota": {"unlimited": true, "report_submits_per_day": 3},
    }))
    .unwrap();
    assert_eq!((users.rate_limit.public_per_minute, users.rate_limit.protected()), (40, (50, 30)));
    assert_eq!((users.quota.search_requests, users.quota.report_submits), (None, Some(3)));
}

#[test]
fn all_invalid_fields_are_reported_at_once() {
    let config = json!({
        "auth": {"mode": "of", "grace_seconds": -1},
        "limits": {"max_tags": "many"},
        "rate_limit": {"enabled": 1, "ws": {"events_per_minute": 0, "evnts_per_minute": 3}, "gossip": []},
        "a/b": 1,
    });
    let mut found = problems("relay", &config);
    found.sort();
    let pointers: Vec<&str> = found.iter().map(|(pointer, _)| pointer.as_str()).collect();
    assert_eq!(
        pointers,
        [
            "/auth/grace_seconds",
            "/auth/mode",
            "/a~1b",
            "/limits/max_tags",
            "/rate_limit/enabled",
            "/rate_limit/gossip",
            "/rate_limit/ws/events_per_minute",
            "/rate_limit/ws/evnts_per_minute",
        ]
    );
    assert_eq!(found[1].1, "must be one of: off, required");
    assert_eq!(found[6].1, "must be a whole number from 1 to 1000000");
}

#[test]
fn a_running_service_ignores_unknown_fields_but_not_invalid_ones() {
    let newer = json!({"rate_limit": {"ws": {"events_per_minute": 9, "zaps_per_minute": 3}}});
    let relay: RelayDocument = read(&newer).unwrap();
    assert_eq!(relay.rate_limit.ws.events_per_minute, 9);
    for wrong in [json!({"auth": {"mode": "never"}}), json!([]), json!(null), json!("relay")] {
        assert!(read::<RelayDocument>(&wrong).is_err(), "{wrong}");
        assert!(validate("relay", &wrong).is_err(), "{wrong}");
    }
}

#[test]
fn null_is_invalid_except_in_optional_fields() {
    for (service, pointer, config) in [
        ("relay", "/auth", json!({"auth": null})),
        ("relay", "/auth/mode", json!({"auth": {"mode": null}})),
        ("relay", "/auth/grace_seconds", json!({"auth": {"grace_seconds": null}})),
        ("relay", "/rate_limit", json!({"rate_limit": null})),
        ("relay", "/rate_limit/enabled", json!({"rate_limit": {"enabled": null}})),
        ("bootstrap", "/auth/mode", json!({"auth": {"mode": null}})),
        ("bootstrap", "/nodes", json!({"nodes": null})),
        ("bootstrap", "/topics", json!({"topics": null})),
        ("user-api", "/quota/unlimited", json!({"quota": {"unlimited": null}})),
        (
            "user-api",
            "/quota/trust_requests_per_day",
            json!({"quota": {"trust_requests_per_day": null}}),
        ),
    ] {
        let found = problems(service, &config);
        let pointers: Vec<&str> = found.iter().map(|(pointer, _)| pointer.as_str()).collect();
        assert_eq!(pointers, [pointer], "{config}");
    }
    // Nor does a stored document with null switch authentication off.
    assert!(read::<RelayDocument>(&json!({"auth": {"mode": null}})).is_err());
    assert!(read::<RelayDocument>(&json!({"auth": null})).is_err());

    let relay: RelayDocument = read(&json!({
        "auth": {"mode": "required", "enforce_at": null},
        "rate_limit": {"ws": {"event_by_ip": null}, "iroh": {"by_peer": null}},
    }))
    .unwrap();
    assert_eq!(relay.auth, AuthSettings::REQUIRED);
    assert_eq!(validate("user-api", &json!({"rate_limit": {"http": {"by_ip": null}}})), Ok(()));
    let nothing = json!({"hint": null, "exp": null, "descriptor": null});
    assert_eq!(validate("bootstrap", &nothing), Ok(()));
}

#[test]
fn secrets_unknown_services_and_oversized_documents_are_refused() {
    let secret = json!({"descriptor": {"api_key": "x"}, "auth": {"mode": "bad"}});
    let refused = validate("bootstrap", &secret);
    assert_eq!(refused, Err(Invalid::Secrets(vec!["/descriptor/api_key".to_owned()])));
    assert!(matches!(validate("trust", &json!({})), Err(Invalid::Service { .. })));
    let giant = json!({"descriptor": "x".repeat(MAX_BYTES)});
    assert!(matches!(validate("bootstrap", &giant), Err(Invalid::TooLarge(_))));
    for odd in [json!({"hint": ["a\0b"]}), json!({"topics": {"a\0": []}})] {
        assert!(matches!(validate("bootstrap", &odd), Err(Invalid::Fields(_))), "{odd}");
    }
    assert_eq!(validate("bootstrap", &json!({"descriptor": {"name": "n"}, "exp": 1})), Ok(()));
}

#[test]
fn safe_defaults_are_stricter_than_the_defaults() {
    let (safe, usual) =
        (RelayDocument::safe_defaults(&LoadError::Missing), RelayDocument::default());
    let (strict, normal) = (safe.rate_limit.ws, usual.rate_limit.ws);
    let numbers = |ws: relay::WsRates| {
        let pairs = [ws.events(), ws.reqs(), (ws.backfill_by_ip, ws.backfill_by_pubkey)];
        let one = [ws.connections(), ws.concurrent_by_ip, ws.invalid_by_ip];
        pairs.into_iter().flat_map(|(a, b)| [a, b]).chain(one).collect::<Vec<_>>()
    };
    for (safe, usual) in numbers(strict).into_iter().zip(numbers(normal)) {
        assert!(safe < usual, "{safe} {usual}");
    }
    let (strict, normal) = (safe.rate_limit.gossip, usual.rate_limit.gossip);
    assert!(strict.per_peer() < normal.per_peer() && strict.global < normal.global);
    assert!(safe.limits.max_event_bytes < usual.limits.max_event_bytes);

    let safe = UserApiDocument::safe_defaults(&LoadError::Missing).rate_limit;
    let usual = UserApiDocument::default().rate_limit;
    assert!(safe.enabled && safe.auth_per_minute < usual.auth_per_minute);
    assert!(safe.public_per_minute < usual.public_per_minute);
    assert!(safe.protected() < usual.protected());
    assert!(safe.search_per_minute < usual.search_per_minute);
    assert!(safe.admin_login_per_minute < usual.admin_login_per_minute);
}

#[test]
fn penalties_are_off_unless_the_document_has_them() {
    let penalty = |penalty: Value| {
        let config = json!({"rate_limit": {"penalty": penalty}});
        let relay = read::<RelayDocument>(&config).unwrap().rate_limit.penalty;
        assert_eq!(relay, read::<UserApiDocument>(&config).unwrap().rate_limit.penalty);
        relay.map(|it| [it.first, it.max, it.forgiven_after].map(|time| time.as_secs()))
    };
    assert_eq!(penalty(Value::Null), None);
    assert_eq!(penalty(json!({})), Some([10, 3_600, 600]));
    assert_eq!(penalty(json!({"first_seconds": 7, "max_seconds": 7})), Some([7, 7, 600]));
    let backwards = json!({"rate_limit": {"penalty": {"first_seconds": 8, "max_seconds": 7}}});
    let problems = read::<RelayDocument>(&backwards).unwrap_err();
    assert_eq!(problems[0].pointer, "/rate_limit/penalty/max_seconds");
}

#[test]
fn a_document_that_cannot_be_loaded_requires_authentication() {
    assert_eq!(RelayDocument::safe_defaults(&LoadError::Missing).auth.mode, AuthMode::Off);
    let unread = LoadError::Unreadable("away".to_owned());
    assert_eq!(RelayDocument::safe_defaults(&unread).auth.mode, AuthMode::Required);
    let invalid = LoadError::Invalid { version: 1, problems: "/auth/mode".to_owned() };
    assert_eq!(BootstrapDocument::safe_defaults(&invalid).auth.mode, AuthMode::Required);
}
