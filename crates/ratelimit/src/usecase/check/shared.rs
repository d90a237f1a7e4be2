//! The limits of several checks that are decided together.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use headgate::{Batch, BatchLimiter, Check, Cost, Key, KeySpace, Outcome, Verb};

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
        let (units, next) = (cost.get(), self.entries.len());
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

    pub(super) async fn apply(
        &self,
        limiter: &BatchLimiter,
        verb: Verb,
    ) -> Result<Vec<Outcome>, CheckError> {
        if self.entries.is_empty() {
            return Ok(Vec::new());
        }
        let checks = self.entries.iter().map(|entry| {
            // The sum may exceed the maximum cost.
            let cost = Cost::new(entry.units.min(Cost::MAX)).unwrap_or(Cost::ONE);
            let key = Key::new(&entry.subject).map_err(CheckError::Subject)?.within(&entry.space);
            Ok(entry.rule.applied_to(Check::new(key, entry.rule.limit(), cost)?))
        });
        let checks = checks.collect::<Result<Vec<_>, CheckError>>()?;
        Ok(limiter.apply(verb, &Batch::new(checks)?).await?.into_vec())
    }
}
