//! The limits of several checks that are decided together.

use std::{borrow::Cow, collections::HashMap, sync::Arc, time::Duration};

use headgate::{Batch, BatchLimiter, Check, Cost, Key, KeySpace, Outcome, Place, Standing, Verb};

use super::{CheckError, Resolved, Stack};
use crate::CompiledRule;

/// The limits of several questions. Costs of one subject under one rule are added.
#[derive(Default)]
pub(super) struct SharedBatch<'a> {
    entries: Vec<SharedCheck<'a>>,
    places: HashMap<(KeySpace<'a>, Cow<'a, str>), usize>,
}

struct SharedCheck<'a> {
    rule: &'a CompiledRule,
    space: KeySpace<'a>,
    subject: Cow<'a, str>,
    units: u64,
}

impl<'a> SharedBatch<'a> {
    /// Adds the limits of a question; returns its rules and their indexes.
    pub(super) fn add_all(
        &mut self,
        resolved: Resolved<'a, 'a>,
        cost: Cost,
    ) -> (Stack<'a>, Vec<usize>) {
        let limits = resolved.limits.into_iter();
        limits.map(|(rule, space, subject)| (rule, self.add(rule, space, subject, cost))).unzip()
    }

    fn add(
        &mut self,
        rule: &'a Arc<CompiledRule>,
        space: KeySpace<'a>,
        subject: Cow<'a, str>,
        cost: Cost,
    ) -> usize {
        // All checks of a subject share one place.
        let units = if rule.holds_places() { 0 } else { cost.get() };
        let next = self.entries.len();
        let place = *self.places.entry((space, subject.clone())).or_insert(next);
        match self.entries.get_mut(place) {
            Some(entry) => {
                entry.units = entry.units.saturating_add(units);
                // Checks that name different plans of a subject have the lowest limit of them.
                if rule.limit().capacity() < entry.rule.limit().capacity() {
                    entry.rule = rule;
                }
            }
            None => self.entries.push(SharedCheck { rule, space, subject, units }),
        }
        place
    }

    pub(super) const fn len(&self) -> usize {
        self.entries.len()
    }

    /// The units of each limit.
    pub(super) fn units(&self) -> impl Iterator<Item = u64> + Clone {
        self.entries.iter().map(|entry| entry.units.max(1))
    }

    /// Returns `true` if a limit held the reservation already: it ends sooner than one that is made
    /// now. Each limit has its own time, because the slots of a cluster have different clocks.
    pub(super) fn was_held(&self, outcomes: &[Outcome], ttl: Duration) -> bool {
        self.entries.iter().zip(outcomes).any(|(entry, outcome)| {
            let longest = match entry.rule.limit().places() {
                Some(places) => Duration::from_micros(places.window()),
                None => Duration::MAX,
            };
            let ends_if_new = outcome.at + ttl.min(longest);
            matches!(
                outcome.reservation(),
                Some(Standing::Pending { expires_at, .. }) if expires_at < ends_if_new
            )
        })
    }

    /// Each limit: its rule, key space and subject.
    pub(super) fn parts(&self) -> impl Iterator<Item = (&CompiledRule, &KeySpace<'a>, &str)> {
        self.entries.iter().map(|entry| (entry.rule, &entry.space, &*entry.subject))
    }

    pub(super) async fn apply(
        &self,
        limiter: &BatchLimiter,
        verb: Verb,
    ) -> Result<Vec<Outcome>, CheckError> {
        if self.entries.is_empty() {
            return Ok(Vec::new());
        }
        let takes_places = matches!(verb, Verb::Reserve { .. });
        Ok(limiter.apply(verb, &self.batch(takes_places)?).await?.into_vec())
    }

    /// Takes all units, and the places of concurrency limits under a lease.
    pub(super) async fn acquire(
        &self,
        limiter: &BatchLimiter,
        place: Place,
    ) -> Result<Vec<Outcome>, CheckError> {
        if self.entries.is_empty() {
            return Ok(Vec::new());
        }
        let batch = self.batch(true)?.holding(place);
        Ok(limiter.apply(Verb::Acquire, &batch).await?.into_vec())
    }

    fn batch(&self, takes_places: bool) -> Result<Batch<'_>, CheckError> {
        let checks = self.entries.iter().map(|entry| entry.check(takes_places));
        Ok(Batch::new(checks.collect::<Result<Vec<_>, CheckError>>()?)?)
    }
}

impl SharedCheck<'_> {
    fn check(&self, takes_places: bool) -> Result<Check<'_>, CheckError> {
        // The sum may exceed the maximum cost.
        let cost = Cost::new(self.units.min(Cost::MAX)).unwrap_or(Cost::ONE);
        let key = Key::new(&self.subject).map_err(CheckError::Subject)?.within(&self.space);
        let rule = self.rule;
        Ok(if takes_places { rule.taking(key, cost)? } else { rule.check(key, cost)? })
    }
}
