//! The checks that a request needs: all descriptors in one batch.

use std::{collections::HashSet, sync::Arc};

use headgate::{Batch, BatchError, BatchLimiter, KeySpace, Outcome, StoreError, Verb};
use headgate_ratelimit::{AttributeError, Catalog, usecase::CheckError};

use crate::{
    DeniedConsumes, DescriptorRule, DescriptorStatus, EnvoyRequest, EnvoyVerdict, Hits, Settings,
    attributes,
    counter::{CounterAnswer, CounterKey, CounterRequest, DescriptorShare},
    domain::MatchedRule,
    rule::Amount,
};

/// The requests to the store, and the descriptors that each answer decides.
pub(crate) struct Plan {
    descriptors: Vec<DescriptorPlan>,
    /// Limits by rules, each with the descriptor that it applies to and its counter.
    rules: Vec<(usize, usize, DescriptorShare)>,
    counters: Vec<CounterRequest>,
    settings: Settings,
}

/// The decision on one descriptor.
enum DescriptorPlan {
    /// It matches no rule, or its rule is replaced by another one.
    NoRule,
    Unlimited(Arc<DescriptorRule>),
    /// The counter at this index decides.
    Counter(usize, DescriptorShare),
}

// === impl Plan ===

impl Plan {
    pub(crate) fn new(
        request: &EnvoyRequest<'_>,
        mut matched: Vec<Option<MatchedRule>>,
        settings: Settings,
    ) -> Self {
        drop_replaced(&mut matched);
        let mut plan = Self {
            descriptors: Vec::with_capacity(matched.len()),
            rules: Vec::new(),
            counters: Vec::with_capacity(matched.len()),
            settings,
        };
        for (matched, descriptor) in matched.into_iter().zip(&request.descriptors) {
            let planned = matched.map_or(DescriptorPlan::NoRule, |matched| {
                plan.descriptor(matched, descriptor.hits)
            });
            plan.descriptors.push(planned);
        }
        plan
    }

    /// Adds the rules that apply to the attributes of each descriptor.
    pub(crate) fn add_rules(
        &mut self,
        request: &EnvoyRequest<'_>,
        rules: &Catalog,
    ) -> Result<(), EnvoyError> {
        let snapshot = rules.load();
        for (index, descriptor) in request.descriptors.iter().enumerate() {
            let attributes = attributes::of(request.domain, index, descriptor)?;
            for applicable in rules.applicable(&snapshot, &attributes)? {
                let rule = Arc::new(DescriptorRule::from_applicable(&applicable));
                let key = CounterKey::Rule(applicable.key);
                if let Some((counter, share)) = self.counter(key, &rule, descriptor.hits) {
                    self.rules.push((index, counter, share));
                }
            }
        }
        Ok(())
    }

    fn descriptor(
        &mut self,
        MatchedRule { rule, counter, .. }: MatchedRule,
        hits: Hits,
    ) -> DescriptorPlan {
        if matches!(rule.amount, Amount::Unlimited) {
            return DescriptorPlan::Unlimited(rule);
        }
        match self.counter(CounterKey::Descriptor(counter), &rule, hits) {
            Some((index, share)) => DescriptorPlan::Counter(index, share),
            None => DescriptorPlan::NoRule,
        }
    }

    /// Asks a counter; returns its index. `None` if there is nothing to ask for.
    fn counter(
        &mut self,
        key: CounterKey,
        rule: &Arc<DescriptorRule>,
        hits: Hits,
    ) -> Option<(usize, DescriptorShare)> {
        let (units, is_refund) = match hits {
            Hits::Take(units) => (units, false),
            Hits::Peek => (0, false),
            Hits::Refund(units) => (units, true),
        };
        let Amount::Limited(counted) = &rule.amount else {
            return None;
        };
        if is_refund && counted.capacity() == 0 {
            return None;
        }
        let is_same = |other: &CounterRequest| {
            other.key == key && other.is_refund == is_refund && other.suffix() == counted.suffix
        };
        let index = self.counters.iter().position(is_same).unwrap_or_else(|| {
            let rule = Arc::clone(rule);
            self.counters.push(CounterRequest { key, rule, units: 0, is_refund });
            self.counters.len() - 1
        });
        let request = &mut self.counters[index];
        request.units = request.units.saturating_add(units);
        // If a request brings two limits for one counter, the smaller one applies.
        if counted.capacity() < request.capacity() {
            request.rule = Arc::clone(rule);
        }
        Some((index, DescriptorShare { units, cumulative: request.units }))
    }

    /// Asks the store in one call, and in another if units are given back.
    pub(crate) async fn ask(
        &self,
        limiter: &BatchLimiter,
    ) -> Result<Vec<Option<CounterAnswer>>, EnvoyError> {
        let spaces: Vec<KeySpace<'_>> = self.counters.iter().map(CounterRequest::space).collect();
        let mut answers = vec![None; self.counters.len()];
        for is_refund in [false, true] {
            let indexes =
                (0..self.counters.len()).filter(|i| self.counters[*i].is_refund == is_refund);
            let indexes: Vec<usize> = indexes.collect();
            if indexes.is_empty() {
                continue;
            }
            let checks =
                indexes.iter().map(|i| self.counters[*i].check(&spaces[*i], self.settings));
            let batch = Batch::new(checks.collect::<Option<Vec<_>>>().unwrap_or_default())?;
            let verb = if is_refund { Verb::Refund } else { self.verb() };
            let outcomes = match limiter.apply(verb, &batch).await {
                // A failed refund denies nothing.
                Err(_) if is_refund => continue,
                outcomes => outcomes?,
            };
            self.record(verb, &indexes, &outcomes, &mut answers);
        }
        self.use_up(limiter, &spaces, &mut answers).await;
        Ok(answers)
    }

    fn record(
        &self,
        verb: Verb,
        indexes: &[usize],
        outcomes: &[Outcome],
        answers: &mut [Option<CounterAnswer>],
    ) {
        let modes = indexes.iter().map(|index| self.counters[*index].mode(self.settings));
        let all_have_room =
            modes.clone().zip(outcomes).all(|(mode, outcome)| !mode.can_block() || outcome.allowed);
        for ((index, mode), outcome) in indexes.iter().zip(modes).zip(outcomes) {
            let taken = verb == Verb::Acquire && mode.takes(outcome.allowed, all_have_room);
            answers[*index] = Some(self.counters[*index].answer(*outcome, taken));
        }
    }

    /// Takes the units that are left where more were asked for: a charge after the fact has
    /// happened, and the next peek must see it. Only a charge that does not fit costs this second
    /// call; it is retried if other requests take units from the counter in between.
    async fn use_up(
        &self,
        limiter: &BatchLimiter,
        spaces: &[KeySpace<'_>],
        answers: &mut [Option<CounterAnswer>],
    ) {
        const MAX_ATTEMPTS: usize = 4;
        let left = |index: usize| {
            let answer = answers[index].as_ref()?;
            let uses_up = self.counters[index].uses_up(answer, self.settings);
            uses_up.then_some((index, answer.before))
        };
        let mut left: Vec<(usize, u64)> = (0..self.counters.len()).filter_map(left).collect();
        for _ in 0..MAX_ATTEMPTS {
            let checks = left.iter().filter_map(|(index, units)| {
                self.counters[*index].charge(&spaces[*index], *units, self.settings)
            });
            let Ok(batch) = Batch::new(checks.collect::<Vec<_>>()) else {
                return;
            };
            // The request is denied whether or not this succeeds.
            let Ok(charges) = limiter.apply(Verb::Acquire, &batch).await else {
                return;
            };
            let mut retries = Vec::new();
            for ((index, _), charged) in left.into_iter().zip(charges) {
                if let Some(answer) = &mut answers[index] {
                    answer.outcome.remaining = charged.remaining;
                    answer.taken = charged.allowed;
                }
                if !charged.allowed && charged.degraded.is_none() && charged.remaining > 0 {
                    retries.push((index, charged.remaining));
                }
            }
            left = retries;
        }
    }

    /// Returns a peek, which takes nothing, if the request is denied in any case and denials take
    /// no units.
    fn verb(&self) -> Verb {
        let is_hopeless = self
            .counters
            .iter()
            .any(|counter| counter.exceeds_capacity() && counter.is_enforced(self.settings));
        if is_hopeless && self.settings.denied_consumes == DeniedConsumes::None {
            Verb::Peek
        } else {
            Verb::Acquire
        }
    }

    /// Combines the answers into the verdict.
    pub(crate) fn verdict(self, answers: &[Option<CounterAnswer>]) -> EnvoyVerdict {
        let Self { descriptors, rules, counters, settings } = self;
        let status = |planned| match planned {
            DescriptorPlan::NoRule => DescriptorStatus::unlimited(0),
            DescriptorPlan::Unlimited(rule) => DescriptorStatus {
                rule: Some(rule),
                ..DescriptorStatus::unlimited(u32::MAX.into())
            },
            DescriptorPlan::Counter(i, share) => counters[i].status(share, answers[i].as_ref()),
        };
        let mut statuses: Vec<DescriptorStatus> = descriptors.into_iter().map(status).collect();
        let mut also = Vec::new();
        for (descriptor, i, share) in rules {
            let mut other = counters[i].status(share, answers[i].as_ref());
            let shown = &mut statuses[descriptor];
            if other.urgency(settings.quota_mode) > shown.urgency(settings.quota_mode) {
                std::mem::swap(shown, &mut other);
            }
            if other.rule.is_some() {
                also.push((descriptor, other));
            }
        }
        let all = statuses.iter().chain(also.iter().map(|(_, status)| status));
        let over_limit = is_over_limit(all, settings.quota_mode);
        EnvoyVerdict { over_limit, statuses, also }
    }
}

/// Returns true if the request is denied: by any limit that is not in quota mode, or by all of
/// those that are.
fn is_over_limit<'s>(
    statuses: impl Iterator<Item = &'s DescriptorStatus> + Clone,
    all_in_quota_mode: bool,
) -> bool {
    let is_quota = |it: &&DescriptorStatus| it.is_quota(all_in_quota_mode);
    let mut quotas = statuses.clone().filter(is_quota).peekable();
    statuses.filter(|it| !is_quota(it)).any(DescriptorStatus::denies)
        || (quotas.peek().is_some() && quotas.all(DescriptorStatus::denies))
}

/// Drops the rules that another matched rule replaces; unlimited ones stay.
fn drop_replaced(matched: &mut [Option<MatchedRule>]) {
    let all = matched.iter().flatten();
    let replaced: HashSet<String> = all.flat_map(|it| it.rule.replaces.iter().cloned()).collect();
    let is_replaced =
        |it: &MatchedRule| replaced.contains(&it.rule.name) && it.rule.rate().is_some();
    for slot in matched {
        if slot.as_ref().is_some_and(is_replaced) {
            *slot = None;
        }
    }
}

/// A request that cannot be answered.
#[derive(Debug, thiserror::Error)]
pub enum EnvoyError {
    /// The management server has not sent a configuration yet.
    #[error(
        "no rate limit configuration yet: see envoy in /readyz, and check envoy.xds.url and \
         envoy.xds.node_id"
    )]
    NoConfiguration,
    /// The entries of a descriptor cannot be attributes.
    #[error("descriptors: {0}")]
    Attributes(#[from] AttributeError),
    /// The rules for a descriptor cannot be applied.
    #[error("descriptors: {0}")]
    Rules(#[from] CheckError),
    /// The checks do not make a batch.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[cfg(test)]
mod tests;
