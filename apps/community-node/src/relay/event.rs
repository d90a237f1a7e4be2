//! A valid event: within bounds, with a topic, signed by its author.

use std::collections::HashSet;

use nostr::{
    event::{Event, EventId, Kind, Tags},
    filter::SingleLetterTag,
    key::PublicKey,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use thiserror::Error;

use super::{
    address::Address,
    footprint,
    second::{SECONDS_A_DAY, Second},
};
use crate::documents::relay::EventLimits;

/// Maximum seconds by which an event's time may be ahead of ours.
pub(crate) const MAX_AHEAD_SECONDS: Second = 900;

/// Maximum age of an event: no filter may ask for older ones.
pub(crate) const MAX_AGE_SECONDS: Second = 30 * SECONDS_A_DAY;

/// Maximum difference between an ephemeral event's time and ours, in seconds: its id is not
/// remembered for longer.
pub(crate) const EPHEMERAL_SECONDS: Second = 300;

/// A verified event, with the JSON for subscribers.
#[derive(Debug)]
pub(crate) struct VerifiedEvent {
    /// Without its tags, which take several times the size of their JSON.
    pub(crate) event: Event,
    pub(crate) json: Box<RawValue>,
    /// Without duplicates: reads are far more frequent than writes.
    topics: Box<[Box<str>]>,
    /// Values of its one-letter tags.
    letters: Box<[Letter]>,
    /// Address at which it replaces older events.
    pub(crate) address: Option<Box<Address>>,
    /// Second in which it expires (NIP-40).
    pub(crate) expires_at: Option<Second>,
    /// True if only its author may publish it (NIP-70).
    protected: bool,
    /// Content in lower case, if that differs: searches read it often.
    lowercase: Option<Box<str>>,
}

type Letter = (SingleLetterTag, Box<str>);

/// Bounds of an event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventBounds {
    pub(crate) max_bytes: usize,
    pub(crate) max_tags: usize,
}

/// Reason for refusing an event.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(crate) enum EventError {
    #[error("invalid: event is larger than {0} bytes")]
    TooLarge(usize),
    #[error("invalid: not an event")]
    Malformed,
    #[error("invalid: event has more than {0} tags")]
    TooManyTags(usize),
    #[error("invalid: event names no topic: a t tag is required")]
    NoTopic,
    #[error("invalid: an authentication event belongs into AUTH")]
    Authentication,
    #[error("invalid: created_at is too far in the future")]
    FromTheFuture,
    #[error("invalid: created_at is more than 30 days ago")]
    TooOld,
    #[error("invalid: an event of this kind must be from the last 5 minutes")]
    Stale,
    #[error("invalid: expiration must be a number of seconds since 1970")]
    Expiration,
    #[error("invalid: event has expired")]
    Expired,
    #[error("invalid: a deletion names no event: an e or a tag is required")]
    NothingToDelete,
    #[error("invalid: id or signature does not match the event")]
    Forged,
}

// === impl EventBounds ===

impl EventBounds {
    /// Bounds of the document in force.
    pub(crate) fn of(limits: &EventLimits) -> Self {
        let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        Self { max_bytes: number(limits.max_event_bytes), max_tags: number(limits.max_tags) }
    }
}

// === impl VerifiedEvent ===

impl VerifiedEvent {
    /// Parses and verifies an event; the signature, the most expensive part, comes last.
    pub(crate) fn read(json: &str, bounds: EventBounds, now: Second) -> Result<Self, EventError> {
        let event = parse(json, bounds)?;
        if event.kind == Kind::Authentication {
            return Err(EventError::Authentication);
        }
        // A deletion has the topics of the events that it deletes.
        if is_deletion(&event) {
            check_deletion(&event)?;
        } else if topics(&event).next().is_none() {
            return Err(EventError::NoTopic);
        }
        check_time(&event, now)?;
        let expires_at = expiration(&event)?;
        if expires_at.is_some_and(|end| end <= now) {
            return Err(EventError::Expired);
        }
        verified(event, expires_at)
    }

    /// Its topics.
    pub(crate) fn topics(&self) -> impl Iterator<Item = &str> {
        self.topics.iter().map(|topic| &**topic)
    }

    /// Values of its tags of one letter.
    pub(crate) fn tagged(&self, letter: SingleLetterTag) -> impl Iterator<Item = &str> {
        let first = self.letters.partition_point(|(other, _)| *other < letter);
        let of_letter = self.letters[first..].iter().take_while(move |(other, _)| *other == letter);
        of_letter.map(|(_, value)| &**value)
    }

    /// Bytes on the heap.
    pub(crate) fn footprint(&self) -> usize {
        let topics: usize = self.topics().map(footprint::text).sum();
        let letters: usize = self.letters.iter().map(|(_, value)| footprint::text(value)).sum();
        footprint::text(self.json.get())
            + footprint::text(&self.event.content)
            + footprint::list::<Box<str>>(self.topics.len())
            + footprint::list::<Letter>(self.letters.len())
            + topics
            + letters
            + self.lowercase.as_deref().map_or(0, footprint::text)
            + self.address.as_ref().map_or(0, |it| footprint::list::<Address>(1) + it.footprint())
    }

    /// Content in lower case.
    pub(crate) fn lowercase(&self) -> &str {
        self.lowercase.as_deref().unwrap_or(&self.event.content)
    }

    /// Returns true if only its author may publish it.
    pub(crate) fn is_protected(&self) -> bool {
        self.protected
    }

    /// Returns true if it has expired.
    pub(crate) fn is_expired(&self, now: Second) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }

    /// Returns true if it is a deletion.
    pub(crate) fn is_deletion(&self) -> bool {
        is_deletion(&self.event)
    }

    /// Its author.
    pub(crate) fn author(&self) -> &PublicKey {
        &self.event.pubkey
    }

    /// Returns true if it is ephemeral: forwarded, but not stored.
    pub(crate) fn is_ephemeral(&self) -> bool {
        is_ephemeral(&self.event)
    }
}

fn is_ephemeral(event: &Event) -> bool {
    (20_000..30_000).contains(&event.kind.as_u16())
}

fn is_deletion(event: &Event) -> bool {
    event.kind == Kind::EventDeletion
}

fn check_deletion(event: &Event) -> Result<(), EventError> {
    let names_something = event.tags.iter().any(|tag| matches!(tag.kind(), "e" | "a"));
    if names_something { Ok(()) } else { Err(EventError::NothingToDelete) }
}

/// Parses the second in which the event expires, if it does.
fn expiration(event: &Event) -> Result<Option<Second>, EventError> {
    let Some(tag) = event.tags.iter().find(|tag| tag.kind() == "expiration") else {
        return Ok(None);
    };
    let end = tag.content().and_then(|end| end.parse().ok());
    end.map(Some).ok_or(EventError::Expiration)
}

fn check_time(event: &Event, now: Second) -> Result<(), EventError> {
    let (ahead, age, too_old) = if is_ephemeral(event) {
        (EPHEMERAL_SECONDS, EPHEMERAL_SECONDS, EventError::Stale)
    } else {
        (MAX_AHEAD_SECONDS, MAX_AGE_SECONDS, EventError::TooOld)
    };
    let created_at = event.created_at.as_secs();
    if created_at > now.saturating_add(ahead) {
        return Err(EventError::FromTheFuture);
    }
    if created_at < now.saturating_sub(age) { Err(too_old) } else { Ok(()) }
}

/// Parses an event within bounds, without verifying it.
pub(crate) fn parse(json: &str, bounds: EventBounds) -> Result<Event, EventError> {
    if json.len() > bounds.max_bytes {
        return Err(EventError::TooLarge(bounds.max_bytes));
    }
    let event: Event = serde_json::from_str(json).map_err(|_| EventError::Malformed)?;
    if event.tags.len() > bounds.max_tags {
        return Err(EventError::TooManyTags(bounds.max_tags));
    }
    Ok(event)
}

/// Parses the claimed id alone.
pub(crate) fn claimed_id(json: &str) -> Option<EventId> {
    #[derive(Deserialize)]
    struct Claim {
        id: EventId,
    }
    serde_json::from_str::<Claim>(json).ok().map(|claim| claim.id)
}

fn verified(mut event: Event, expires_at: Option<Second>) -> Result<VerifiedEvent, EventError> {
    event.verify().map_err(|_| EventError::Forged)?;
    // Serialized again, without unknown fields.
    let json = serde_json::value::to_raw_value(&event).map_err(|_| EventError::Malformed)?;
    let mut named = HashSet::new();
    let topics = topics(&event).filter(|topic| named.insert(*topic)).map(Box::from).collect();
    let letters = event.tags.iter().filter_map(|tag| {
        let letter = tag.single_letter_tag()?;
        Some((letter, tag.content()?.into()))
    });
    let mut letters: Box<[Letter]> = letters.collect();
    letters.sort_unstable();
    let address = Address::of(&event).map(Box::new);
    let protected = event.tags.iter().any(|tag| tag.kind() == "-");
    let lowercase = Some(event.content.to_lowercase()).filter(|text| *text != event.content);
    let lowercase = lowercase.map(String::into_boxed_str);
    event.tags = Tags::new();
    Ok(VerifiedEvent { event, json, topics, letters, address, expires_at, protected, lowercase })
}

fn topics(event: &Event) -> impl Iterator<Item = &str> {
    let topics = event.tags.iter().filter(|tag| tag.kind() == "t");
    topics.filter_map(|tag| tag.content()).filter(|topic| !topic.is_empty())
}

#[cfg(test)]
mod tests;
