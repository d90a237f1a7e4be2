//! Events for tests.

use nostr::{
    event::{Event, EventBuilder, FinalizeEvent as _, Kind, Tag},
    key::{Keys, SecretKey},
    types::Timestamp,
};

use super::{
    event::{EventBounds, VerifiedEvent},
    second::Second,
};

pub(crate) const NOW: Second = 1_800_000_000;
pub(crate) const BOUNDS: EventBounds = EventBounds { max_bytes: 32_768, max_tags: 200 };

/// Keys of a test user.
pub(crate) fn keys(whose: u8) -> Keys {
    Keys::new(SecretKey::from_slice(&[whose; 32]).unwrap())
}

/// A text note about `topics`.
pub(crate) fn event(topics: &[&str], at: Second, content: &str) -> Event {
    of_kind(1, topics, at, content)
}

pub(crate) fn of_kind(kind: u16, topics: &[&str], at: Second, content: &str) -> Event {
    let tags: Vec<_> = topics.iter().map(|topic| ["t", topic]).collect();
    signed(EventBuilder::new(Kind::from(kind), content), &tags, at)
}

/// A current event with these tags.
pub(crate) fn tagged(tags: &[[&str; 2]]) -> Event {
    signed(EventBuilder::new(Kind::TextNote, ""), tags, NOW)
}

/// A user's event with these tags.
pub(crate) fn signed_by(whose: u8, kind: u16, tags: &[[&str; 2]], at: Second) -> Event {
    sign(&keys(whose), EventBuilder::new(Kind::from(kind), ""), tags, at)
}

fn signed(builder: EventBuilder, tags: &[[&str; 2]], at: Second) -> Event {
    sign(&keys(1), builder, tags, at)
}

fn sign(keys: &Keys, builder: EventBuilder, tags: &[[&str; 2]], at: Second) -> Event {
    let builder = builder.tags(tags.iter().map(|tag| Tag::parse(*tag).unwrap()));
    builder.custom_created_at(Timestamp::from_secs(at)).finalize(keys).unwrap()
}

pub(crate) fn verified(event: &Event) -> VerifiedEvent {
    VerifiedEvent::read(&event.as_json(), BOUNDS, NOW).unwrap()
}
