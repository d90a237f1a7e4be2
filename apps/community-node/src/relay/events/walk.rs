//! A walk through the stored events, newest first, for all queries of a subscription together.
//!
//! It proceeds in steps, so that the lock is held briefly and events are compared without it. Its
//! length is bounded for any subscription.

use std::{collections::BTreeSet, sync::Arc};

use super::{Published, stored::Newest};
use crate::relay::{
    event::VerifiedEvent,
    filter::{MAX_LIMIT, Query},
    second::Second,
};

/// Maximum number of entries that are visited for one subscription.
const MAX_VISITS: usize = 10_000;

/// Maximum number of entries that are visited in one step.
const STEP_VISITS: usize = 250;

/// A walk and its progress.
#[derive(Debug)]
pub(super) struct Walk<'q> {
    queries: Vec<Wanted<'q>>,
    pub(super) stretches: Vec<Stretch<'q>>,
    /// The last entry visited.
    pub(super) last: Option<Newest>,
    visits: usize,
    found: Vec<Arc<Published>>,
    /// Events published later are not part of it.
    up_to: u64,
    now: Second,
}

/// A query and the number of events that it still needs.
#[derive(Debug)]
struct Wanted<'q> {
    query: &'q Query,
    left: usize,
}

/// A time range of one topic.
#[derive(Debug)]
pub(super) struct Stretch<'q> {
    pub(super) topic: &'q str,
    pub(super) newest: Newest,
    pub(super) oldest: Newest,
}

// === impl Walk ===

impl<'q> Walk<'q> {
    /// A walk at `now` for those of `queries` that ask for stored events.
    pub(super) fn new(queries: &'q [Query], up_to: u64, now: Second) -> Self {
        let asking = queries.iter().filter_map(|query| Some((query, query.kept()?)));
        // Queries often share topics and times: each range is walked once.
        let stretches: BTreeSet<_> = asking
            .clone()
            .flat_map(|(query, (since, until))| query.topics().map(move |t| (t, since, until)))
            .collect();
        let stretches = stretches.into_iter().map(|(topic, since, until)| Stretch {
            topic,
            newest: Newest::bound(until, [0; 32]),
            oldest: Newest::bound(since, [0xff; 32]),
        });
        Self {
            queries: asking.map(|(query, _)| Wanted { query, left: query.limit }).collect(),
            stretches: stretches.collect(),
            last: None,
            visits: MAX_VISITS,
            found: Vec::new(),
            up_to,
            now,
        }
    }

    /// Number of entries of the next step.
    pub(super) fn step(&self) -> usize {
        self.visits.min(STEP_VISITS)
    }

    /// Records the end of a step, and its number of entries.
    pub(super) fn advance(&mut self, visited: usize, last: Option<Newest>) {
        self.visits -= visited.min(self.visits);
        self.last = last.or(self.last.take());
    }

    /// Collects the matching events of one step that may be shown. Returns true if there may be
    /// more.
    pub(super) fn take(
        &mut self,
        seen: Vec<Arc<Published>>,
        is_shown: impl Fn(&VerifiedEvent) -> bool,
    ) -> bool {
        let is_over = seen.is_empty() || self.visits == 0;
        let (up_to, now) = (self.up_to, self.now);
        let is_found = |published: &Arc<Published>| {
            let event = &published.event;
            published.number <= up_to && !event.is_expired(now) && is_shown(event)
        };
        for published in seen.into_iter().filter(is_found) {
            let mut is_wanted = false;
            for wanted in self.queries.iter_mut().filter(|wanted| wanted.left > 0) {
                if wanted.query.asks_for_kept(&published.event) {
                    wanted.left -= 1;
                    is_wanted = true;
                }
            }
            if is_wanted {
                self.found.push(published);
            }
            if self.found.len() == MAX_LIMIT || self.queries.iter().all(|wanted| wanted.left == 0) {
                return false;
            }
        }
        !is_over
    }

    /// Returns the events found, newest first.
    pub(super) fn found(self) -> Vec<Arc<Published>> {
        self.found
    }
}
