use headgate::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::sample::Sample;

type Read = Result<Option<ServiceConfig>, DocumentStoreError>;

#[expect(clippy::unnecessary_wraps, reason = "as it comes from a repository")]
fn stored(version: i64, config: Value) -> Read {
    Ok(Some(ServiceConfig {
        service: "relay".to_owned(),
        version,
        config,
        updated_at: Timestamp::from_micros(0),
        updated_by: "ada".to_owned(),
    }))
}

fn events(n: u64) -> Value {
    json!({"rate_limit": {"events_per_minute": n}})
}

fn unavailable() -> Read {
    Err(DocumentStoreError::unavailable(std::io::Error::other("away")))
}

fn limit(watcher: &Watcher<Sample>) -> u64 {
    watcher.with(|sample| sample.events_per_minute)
}

#[test]
fn only_a_document_of_another_version_replaces_the_one_in_force() {
    let watcher = Watcher::<Sample>::new();
    let mut changes = watcher.subscribe();
    assert_eq!((limit(&watcher), watcher.source().name()), (30, "safe_defaults"));
    watcher.apply(stored(3, events(50)));
    assert_eq!((limit(&watcher), watcher.source()), (50, Source::Document { version: 3 }));
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();

    watcher.apply(stored(3, events(60)));
    assert_eq!(limit(&watcher), 50, "the version is the same");
    assert!(!changes.has_changed().unwrap());
    watcher.apply(stored(2, events(70)));
    assert_eq!(limit(&watcher), 70, "a backup was restored");
}

#[test]
fn the_last_good_document_stays_in_force_until_the_next_good_one() {
    let watcher = Watcher::<Sample>::new();
    watcher.apply(stored(1, events(50)));
    watcher.apply(stored(2, json!({"mode": "perhaps"})));
    assert_eq!(limit(&watcher), 50);
    let Source::LastGood { version: 1, problem: LoadError::Invalid { version: 2, problems } } =
        watcher.source()
    else {
        panic!("{:?}", watcher.source());
    };
    assert!(problems.contains("/mode"), "{problems}");

    watcher.apply(unavailable());
    assert!(matches!(
        watcher.source(),
        Source::LastGood { version: 1, problem: LoadError::Unreadable(_) }
    ));
    watcher.apply(Ok(None));
    assert_eq!(watcher.source(), Source::LastGood { version: 1, problem: LoadError::Missing });
    watcher.apply(stored(1, events(50)));
    assert_eq!(watcher.source(), Source::Document { version: 1 });
    watcher.apply(stored(3, events(80)));
    assert_eq!((limit(&watcher), watcher.source().version()), (80, Some(3)));
}

#[test]
fn safe_defaults_apply_until_the_first_good_document() {
    for read in [Ok(None), unavailable(), stored(1, json!({"rate_limit": 3}))] {
        let watcher = Watcher::<Sample>::new();
        watcher.apply(read);
        assert_eq!((limit(&watcher), watcher.source().name()), (30, "safe_defaults"));
        assert_eq!(watcher.source().version(), None);
        watcher.apply(stored(1, events(50)));
        assert_eq!(limit(&watcher), 50);
    }
}
