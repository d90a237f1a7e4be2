//! Filters of subscriptions, within bounds.

use std::collections::BTreeSet;

use nostr::{
    event::{EventId, Kind},
    filter::{Filter, MatchEventOptions, SingleLetterTag},
    key::PublicKey,
};
use serde_json::value::RawValue;
use thiserror::Error;

use super::{
    event::{MAX_AGE_SECONDS, VerifiedEvent},
    footprint,
    second::{SECONDS_A_DAY, Second},
};

/// Maximum number of filters of a subscription.
const MAX_FILTERS: usize = 10;
/// Maximum number of values in a list of a filter.
const MAX_VALUES: usize = 200;
/// Maximum time range of a filter.
const MAX_WINDOW_SECONDS: Second = 7 * SECONDS_A_DAY;
/// Maximum number of stored events for a filter, and for a subscription.
pub(crate) const MAX_LIMIT: usize = 1_000;
/// Default of `limit`.
pub(crate) const DEFAULT_LIMIT: usize = 500;
/// Age of `since` up to which a filter asks for no stored events.
const LIVE_SECONDS: Second = 5;

/// A filter within its bounds.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    filter: Filter,
    /// First and last second of the stored events that it asks for.
    kept: Option<(Second, Second)>,
    pub(crate) limit: usize,
    live: bool,
}

/// Values of a one-letter tag that a filter asks for.
type TagValues = (SingleLetterTag, BTreeSet<String>);

/// Reason for refusing a subscription. The texts are stable: clients may compare them.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(crate) enum FilterError {
    #[error("invalid: at least one filter is required")]
    None,
    #[error("invalid: more than 10 filters")]
    TooMany,
    #[error("invalid: not a filter")]
    Malformed,
    #[error("invalid: a filter has more than 200 values")]
    TooManyValues,
    #[error("invalid: a #t filter is required")]
    NoTopic,
    #[error("invalid: since is after until")]
    SinceAfterUntil,
    #[error("invalid: since is more than 30 days ago")]
    TooLongAgo,
    #[error("invalid: more than 7 days between since and until")]
    TooLongAWindow,
}

// === impl Query ===

/// Parses the filters of a subscription.
pub(crate) fn queries(parts: &[&RawValue], now: Second) -> Result<Vec<Query>, FilterError> {
    if parts.is_empty() {
        return Err(FilterError::None);
    }
    if parts.len() > MAX_FILTERS {
        return Err(FilterError::TooMany);
    }
    parts.iter().map(|part| Query::read(part.get(), now)).collect()
}

impl Query {
    fn read(json: &str, now: Second) -> Result<Self, FilterError> {
        let mut filter: Filter = serde_json::from_str(json).map_err(|_| FilterError::Malformed)?;
        // Ignored, as NIP-50 says of relays without search.
        filter.search = None;
        if most_values(&filter) > MAX_VALUES {
            return Err(FilterError::TooManyValues);
        }
        if topics(&filter).next().is_none() {
            return Err(FilterError::NoTopic);
        }
        check_order(&filter)?;
        // No stored events are asked for, however old `since` is.
        if filter.limit == Some(0) {
            return Ok(Self { filter, kept: None, limit: 0, live: true });
        }
        let (since, until) = window(&filter, now)?;
        let limit = filter.limit.unwrap_or(DEFAULT_LIMIT).min(MAX_LIMIT);
        let live = since.saturating_add(LIVE_SECONDS) >= now;
        // A query that is not charged for backfill reads a few seconds of stored events at most.
        let kept = if live { (since, until.min(now)) } else { (since, until) };
        let kept = (since < now).then_some(kept);
        Ok(Self { filter, kept, limit, live })
    }

    /// Returns true if it asks for stored events, and not only for new ones.
    pub(crate) fn is_backfill(&self) -> bool {
        !self.live
    }

    /// Topics that it asks for.
    pub(crate) fn topics(&self) -> impl Iterator<Item = &str> {
        topics(&self.filter)
    }

    /// Bytes that it takes.
    pub(crate) fn footprint(&self) -> usize {
        let filter = &self.filter;
        let tags = filter.generic_tags.values().map(|values| {
            let texts: usize = values.iter().map(|value| footprint::text(value)).sum();
            footprint::tree::<String>(values.len()) + texts
        });
        footprint::list::<Self>(1)
            + filter.ids.as_ref().map_or(0, |ids| footprint::tree::<EventId>(ids.len()))
            + filter.authors.as_ref().map_or(0, |keys| footprint::tree::<PublicKey>(keys.len()))
            + filter.kinds.as_ref().map_or(0, |kinds| footprint::tree::<Kind>(kinds.len()))
            + footprint::tree::<TagValues>(filter.generic_tags.len())
            + tags.sum::<usize>()
    }

    /// First and last second of the stored events that it asks for, if any.
    pub(crate) fn kept(&self) -> Option<(Second, Second)> {
        self.kept
    }

    /// Returns true if it matches `event`, a stored one.
    pub(crate) fn asks_for_kept(&self, event: &VerifiedEvent) -> bool {
        let at = event.event.created_at.as_secs();
        self.kept.is_some_and(|(since, until)| (since..=until).contains(&at)) && self.matches(event)
    }

    /// Returns true if it matches `event`.
    pub(crate) fn matches(&self, event: &VerifiedEvent) -> bool {
        // The library would copy all tags of the event for each comparison.
        let but_tags = MatchEventOptions::new().tags(false);
        self.filter.match_event(&event.event, but_tags) && self.matches_tags(event)
    }

    fn matches_tags(&self, event: &VerifiedEvent) -> bool {
        let mut lists = self.filter.generic_tags.iter();
        lists.all(|(letter, wanted)| event.tagged(*letter).any(|value| wanted.contains(value)))
    }
}

fn topics(filter: &Filter) -> impl Iterator<Item = &str> {
    filter.generic_tags.get(&SingleLetterTag::LOWERCASE_T).into_iter().flatten().map(String::as_str)
}

fn most_values(filter: &Filter) -> usize {
    let lists = [
        filter.ids.as_ref().map(BTreeSet::len),
        filter.authors.as_ref().map(BTreeSet::len),
        filter.kinds.as_ref().map(BTreeSet::len),
        filter.generic_tags.values().map(BTreeSet::len).max(),
    ];
    lists.into_iter().flatten().max().unwrap_or(0)
}

fn check_order(filter: &Filter) -> Result<(), FilterError> {
    match (filter.since, filter.until) {
        (Some(since), Some(until)) if since > until => Err(FilterError::SinceAfterUntil),
        _ => Ok(()),
    }
}

/// Time range of a filter. Without `since`, it is the week before `until`.
fn window(filter: &Filter, now: Second) -> Result<(Second, Second), FilterError> {
    let named_since = filter.since.map(|at| at.as_secs());
    let named_until = filter.until.map(|at| at.as_secs());
    // The future has no stored events, and is not counted.
    let end = named_until.unwrap_or(now).min(now);
    let since = named_since.unwrap_or(end.saturating_sub(MAX_WINDOW_SECONDS));
    if since < now.saturating_sub(MAX_AGE_SECONDS) {
        return Err(FilterError::TooLongAgo);
    }
    if end.saturating_sub(since) > MAX_WINDOW_SECONDS {
        return Err(FilterError::TooLongAWindow);
    }
    Ok((since, named_until.unwrap_or(Second::MAX)))
}

#[cfg(test)]
mod tests;
