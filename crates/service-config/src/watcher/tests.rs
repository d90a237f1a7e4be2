use headgate::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::RelayDocument;

type Read = Result<Option<ServiceConfig>, ConfigError>;

#[expect(clippy::unnecessary_wraps, reason = "as it comes from a repository")]
fn kept(version: i64, config: Value) -> Read {
    Ok(Some(ServiceConfig {
        service: "relay".to_owned(),
        version,
        config,
        updated_at: Timestamp::from_micros(0),
        updated_by: "ada".to_owned(),
    }))
}

fn events(n: u64) -> Value {
    json!({"rate_limit": {"ws": {"events_per_minute": n}}})
}

fn away() -> Read {
    Err(ConfigError::unavailable(std::io::Error::other("away")))
}

fn limit(watcher: &Watcher<RelayDocument>) -> u64 {
    watcher.with(|relay| relay.rate_limit.ws.events_per_minute)
}

#[test]
fn a_good_document_replaces_another_version_and_nothing_else_does() {
    let watcher = Watcher::<RelayDocument>::new();
    let mut told = watcher.subscribe();
    assert_eq!((limit(&watcher), watcher.source().name()), (30, "safe_defaults"));
    watcher.apply(kept(3, events(50)));
    assert_eq!((limit(&watcher), watcher.source()), (50, Source::Document { version: 3 }));
    assert!(told.has_changed().unwrap());
    told.mark_unchanged();

    watcher.apply(kept(3, events(60)));
    assert_eq!(limit(&watcher), 50, "the version is the same");
    assert!(!told.has_changed().unwrap());
    watcher.apply(kept(2, events(70)));
    assert_eq!(limit(&watcher), 70, "a backup was restored");
}

#[test]
fn the_last_good_document_stays_until_the_next() {
    let watcher = Watcher::<RelayDocument>::new();
    watcher.apply(kept(1, events(50)));
    watcher.apply(kept(2, json!({"auth": {"mode": "perhaps"}})));
    assert_eq!(limit(&watcher), 50);
    let Source::LastGood { version: 1, problem: Doubt::Broken { version: 2, problems } } =
        watcher.source()
    else {
        panic!("{:?}", watcher.source());
    };
    assert!(problems.contains("/auth/mode"), "{problems}");

    watcher.apply(away());
    assert!(matches!(
        watcher.source(),
        Source::LastGood { version: 1, problem: Doubt::Unreadable(_) }
    ));
    watcher.apply(Ok(None));
    assert_eq!(watcher.source(), Source::LastGood { version: 1, problem: Doubt::Missing });
    watcher.apply(kept(1, events(50)));
    assert_eq!(watcher.source(), Source::Document { version: 1 });
    watcher.apply(kept(3, events(80)));
    assert_eq!((limit(&watcher), watcher.source().version()), (80, Some(3)));
}

#[test]
fn without_a_good_document_since_the_start_it_is_safe_defaults() {
    for read in [Ok(None), away(), kept(1, json!({"limits": 3}))] {
        let watcher = Watcher::<RelayDocument>::new();
        watcher.apply(read);
        assert_eq!((limit(&watcher), watcher.source().name()), (30, "safe_defaults"));
        assert_eq!(watcher.source().version(), None);
        watcher.apply(kept(1, events(50)));
        assert_eq!(limit(&watcher), 50);
    }
}
