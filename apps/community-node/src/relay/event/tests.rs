use super::*;
use crate::relay::samples::{BOUNDS, NOW, event, of_kind, signed_by, verified};

fn refused(json: &str) -> EventError {
    VerifiedEvent::read(json, BOUNDS, NOW).unwrap_err()
}

#[test]
fn a_signed_event_with_a_topic_is_accepted_unchanged() {
    let sent = event(&["rust", "wasm"], NOW, "hello");
    let json = sent.as_json();
    let taken = VerifiedEvent::read(&json, BOUNDS, NOW).unwrap();
    assert_eq!(taken.json.get(), json);
    assert_eq!(taken.topics().collect::<Vec<_>>(), ["rust", "wasm"]);
    assert_eq!(taken.author(), &sent.pubkey);
    assert_eq!(claimed_id(&json), Some(sent.id));
}

#[test]
fn unknown_fields_are_not_forwarded() {
    let json = event(&["rust"], NOW, "hello").as_json();
    let more = json.replacen('{', r#"{"extra":"x","#, 1);
    assert_eq!(VerifiedEvent::read(&more, BOUNDS, NOW).unwrap().json.get(), json);
}

#[test]
fn an_oversized_event_is_refused_before_it_is_parsed() {
    let exact = EventBounds { max_bytes: event(&["rust"], NOW, "x").as_json().len(), ..BOUNDS };
    assert!(VerifiedEvent::read(&event(&["rust"], NOW, "x").as_json(), exact, NOW).is_ok());
    let longer = event(&["rust"], NOW, "xy").as_json();
    let refused = VerifiedEvent::read(&longer, exact, NOW).unwrap_err();
    assert_eq!(refused, EventError::TooLarge(exact.max_bytes));

    let tags = vec!["t"; 201];
    assert_eq!(self::refused(&event(&tags, NOW, "").as_json()), EventError::TooManyTags(200));
    assert!(VerifiedEvent::read(&event(&tags[..200], NOW, "").as_json(), BOUNDS, NOW).is_ok());
}

#[test]
fn events_without_a_topic_are_refused() {
    assert_eq!(refused("{}"), EventError::Malformed);
    assert_eq!(refused("[]"), EventError::Malformed);
    assert_eq!(refused(&event(&[], NOW, "").as_json()), EventError::NoTopic);
    assert_eq!(refused(&event(&[""], NOW, "").as_json()), EventError::NoTopic);
    let auth = of_kind(22_242, &["rust"], NOW, "");
    assert_eq!(refused(&auth.as_json()), EventError::Authentication);
}

#[test]
fn forged_events_are_refused() {
    let json = event(&["rust"], NOW, "hello").as_json();
    assert_eq!(refused(&json.replace("hello", "hullo")), EventError::Forged);
    let mut other = event(&["rust"], NOW, "hello");
    other.sig = event(&["rust"], NOW, "other").sig;
    assert_eq!(refused(&other.as_json()), EventError::Forged);
}

#[test]
fn created_at_must_be_within_bounds() {
    let at = |second| VerifiedEvent::read(&event(&["t"], second, "").as_json(), BOUNDS, NOW);
    assert!(at(NOW + 900).is_ok());
    assert_eq!(at(NOW + 901).unwrap_err(), EventError::FromTheFuture);
    assert!(at(NOW - MAX_AGE_SECONDS).is_ok());
    assert_eq!(at(NOW - MAX_AGE_SECONDS - 1).unwrap_err(), EventError::TooOld);
}

#[test]
fn ephemeral_events_must_be_recent() {
    let at =
        |second| VerifiedEvent::read(&of_kind(20_001, &["t"], second, "").as_json(), BOUNDS, NOW);
    assert!(at(NOW + EPHEMERAL_SECONDS).is_ok());
    assert_eq!(at(NOW + EPHEMERAL_SECONDS + 1).unwrap_err(), EventError::FromTheFuture);
    assert!(at(NOW - EPHEMERAL_SECONDS).is_ok());
    assert_eq!(at(NOW - EPHEMERAL_SECONDS - 1).unwrap_err(), EventError::Stale);
}

#[test]
fn ephemeral_kinds_are_recognised() {
    let ephemeral = |kind| {
        let json = of_kind(kind, &["t"], NOW, "").as_json();
        VerifiedEvent::read(&json, BOUNDS, NOW).unwrap().is_ephemeral()
    };
    assert!(!ephemeral(1));
    assert!(ephemeral(20_000));
    assert!(ephemeral(29_999));
    assert!(!ephemeral(30_000));
}

#[test]
fn a_deletion_needs_a_target_and_no_topic() {
    let deletion = |tags: &[[&str; 2]]| signed_by(1, 5, tags, NOW).as_json();
    assert!(VerifiedEvent::read(&deletion(&[["e", "x"]]), BOUNDS, NOW).unwrap().is_deletion());
    assert_eq!(refused(&deletion(&[["t", "rust"]])), EventError::NothingToDelete);
}

#[test]
fn an_event_expires_at_its_expiration() {
    let ending = |end: &str| signed_by(1, 1, &[["t", "a"], ["expiration", end]], NOW).as_json();
    let taken = VerifiedEvent::read(&ending(&(NOW + 1).to_string()), BOUNDS, NOW).unwrap();
    assert!(!taken.is_expired(NOW) && taken.is_expired(NOW + 1));
    assert_eq!(refused(&ending(&NOW.to_string())), EventError::Expired);
    assert_eq!(refused(&ending("tomorrow")), EventError::Expiration);
}

#[test]
fn contents_are_stored_in_lower_case_if_they_differ() {
    let taken = |content| verified(&event(&["a"], NOW, content));
    let (mixed, plain) = (taken("Grüße, WORLD"), taken("grüße"));
    assert_eq!((mixed.lowercase(), plain.lowercase()), ("grüße, world", "grüße"));
    assert!(plain.lowercase.is_none() && mixed.footprint() > taken("grüße, world").footprint());
}
