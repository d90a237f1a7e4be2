//! What a request asks of the store: every descriptor in one batch.

use std::{collections::HashSet, sync::Arc};

use headgate::{Batch, BatchError, Limiter, Outcome, Space, StoreError, Verb};

use super::{
    asked::{Answer, Asked, Part, Terms},
    domain::Matched,
    question::{Hits, Question},
    rule::{Amount, Rule},
    verdict::{Status, Verdict},
};
use crate::config::DeniedConsumes;

/// What is asked of the store, and which descriptor each answer is for.
pub(super) struct Plan {
    places: Vec<Place>,
    asked: Vec<Asked>,
    terms: Terms,
}

/// How one descriptor is decided.
enum Place {
    /// Nothing is configured for it, or something else takes its place.
    Free,
    Unlimited(Arc<Rule>),
    /// By an answer of the store.
    Asked(usize, Part),
}

/// What counters' names begin with.
const PREFIX: &str = "envoy:";

// === impl Plan ===

impl Plan {
    pub(super) fn new(
        question: &Question<'_>,
        mut matched: Vec<Option<Matched>>,
        terms: Terms,
    ) -> Self {
        drop_replaced(&mut matched);
        let mut plan = Self {
            places: Vec::with_capacity(matched.len()),
            asked: Vec::with_capacity(matched.len()),
            terms,
        };
        for (matched, descriptor) in matched.into_iter().zip(&question.descriptors) {
            let place = matched.map_or(Place::Free, |matched| plan.place(matched, descriptor.hits));
            plan.places.push(place);
        }
        plan
    }

    fn place(&mut self, Matched { rule, subject, .. }: Matched, hits: Hits) -> Place {
        let (own, gives_back) = match hits {
            Hits::Take(units) => (units, false),
            Hits::Look => (0, false),
            Hits::GiveBack(units) => (units, true),
        };
        let Amount::Limited(counted) = &rule.amount else {
            return Place::Unlimited(rule);
        };
        if gives_back && counted.capacity() == 0 {
            return Place::Free;
        }
        let same = |asked: &Asked| {
            asked.subject == subject
                && asked.gives_back == gives_back
                && asked.suffix() == counted.suffix
        };
        let known = self.asked.iter().position(same).unwrap_or_else(|| {
            self.asked.push(Asked { subject, rule: Arc::clone(&rule), units: 0, gives_back });
            self.asked.len() - 1
        });
        let asked = &mut self.asked[known];
        asked.units = asked.units.saturating_add(own);
        // One counter has one limit: of two that a request brings for it, the smaller one.
        if counted.capacity() < asked.capacity() {
            asked.rule = Arc::clone(&rule);
        }
        Place::Asked(known, Part { own, upto: asked.units })
    }

    /// Asks the store, once; and once more where something is given back.
    pub(super) async fn ask(&self, limiter: &Limiter) -> Result<Vec<Option<Answer>>, AskError> {
        let spaces: Vec<Space<'_>> =
            self.asked.iter().map(|asked| Space::new(PREFIX, asked.suffix())).collect();
        let mut answers = vec![None; self.asked.len()];
        for gives_back in [false, true] {
            let places = (0..self.asked.len()).filter(|i| self.asked[*i].gives_back == gives_back);
            let places: Vec<usize> = places.collect();
            if places.is_empty() {
                continue;
            }
            let checks = places.iter().map(|i| self.asked[*i].check(&spaces[*i], self.terms));
            let batch = Batch::new(checks.collect::<Option<Vec<_>>>().unwrap_or_default())?;
            let verb = if gives_back { Verb::Refund } else { self.verb() };
            let outcomes = match limiter.each(verb, &batch).await {
                // What cannot be given back denies nobody.
                Err(_) if gives_back => continue,
                outcomes => outcomes?,
            };
            self.note(verb, &places, &outcomes, &mut answers);
        }
        self.use_up(limiter, &spaces, &mut answers).await;
        Ok(answers)
    }

    fn note(
        &self,
        verb: Verb,
        places: &[usize],
        outcomes: &[Outcome],
        answers: &mut [Option<Answer>],
    ) {
        let stakes = places.iter().map(|place| self.asked[*place].stake(self.terms));
        let all_have_room =
            stakes.clone().zip(outcomes).all(|(stake, outcome)| !stake.binds() || outcome.allowed);
        for ((place, stake), outcome) in places.iter().zip(stakes).zip(outcomes) {
            let taken = verb == Verb::Acquire && stake.takes(outcome.allowed, all_have_room);
            answers[*place] = Some(self.asked[*place].answer(*outcome, taken));
        }
    }

    /// Takes what is left where more was wanted: what is charged for after the fact has happened, and the next
    /// look must see it. It is another call, which only a charge that does not fit costs; and another where
    /// somebody else took some of it meanwhile.
    async fn use_up(
        &self,
        limiter: &Limiter,
        spaces: &[Space<'_>],
        answers: &mut [Option<Answer>],
    ) {
        const TRIES: usize = 4;
        let left = |place: usize| {
            let answer = answers[place].as_ref()?;
            let used_up = self.asked[place].is_used_up(answer, self.terms);
            used_up.then_some((place, answer.before))
        };
        let mut left: Vec<(usize, u64)> = (0..self.asked.len()).filter_map(left).collect();
        for _ in 0..TRIES {
            let checks = left.iter().filter_map(|(place, units)| {
                self.asked[*place].charge(&spaces[*place], *units, self.terms)
            });
            let Ok(batch) = Batch::new(checks.collect::<Vec<_>>()) else {
                return;
            };
            // The request is denied whether or not this succeeds.
            let Ok(charges) = limiter.each(Verb::Acquire, &batch).await else {
                return;
            };
            let mut again = Vec::new();
            for ((place, _), charged) in left.into_iter().zip(charges) {
                if let Some(answer) = &mut answers[place] {
                    answer.outcome.remaining = charged.remaining;
                    answer.taken = charged.allowed;
                }
                if !charged.allowed && charged.degraded.is_none() && charged.remaining > 0 {
                    again.push((place, charged.remaining));
                }
            }
            left = again;
        }
    }

    /// Where the request is denied whatever the store says, and shall take nothing, it is only looked at.
    fn verb(&self) -> Verb {
        let never = self.asked.iter().any(|asked| asked.never_fits() && asked.denies(self.terms));
        if never && self.terms.denied == DeniedConsumes::None { Verb::Peek } else { Verb::Acquire }
    }

    /// What the answers mean.
    pub(super) fn verdict(self, answers: &[Option<Answer>]) -> Verdict {
        let Self { places, asked, terms } = self;
        let status = |place| match place {
            Place::Free => Status::free(0),
            Place::Unlimited(rule) => Status { rule: Some(rule), ..Status::free(u32::MAX.into()) },
            Place::Asked(i, part) => asked[i].status(part, answers[i].as_ref()),
        };
        let statuses: Vec<Status> = places.into_iter().map(status).collect();
        Verdict { over: is_over(&statuses, terms.quota), statuses }
    }
}

/// Any limit denies by itself; limits in quota mode only when all of them do.
fn is_over(statuses: &[Status], all_in_quota_mode: bool) -> bool {
    let denies = |it: &&Status| it.over && !it.rule.as_ref().is_some_and(|rule| rule.shadow);
    let is_quota = |it: &&Status| match &it.rule {
        Some(rule) => (rule.quota || all_in_quota_mode) && rule.rate().is_some(),
        None => all_in_quota_mode,
    };
    let mut quotas = statuses.iter().filter(is_quota).peekable();
    statuses.iter().filter(|it| !is_quota(it)).any(|it| denies(&it))
        || (quotas.peek().is_some() && quotas.all(|it| denies(&it)))
}

/// Where a limit matched that replaces others, those do not count. What is unlimited needs no replacement.
fn drop_replaced(matched: &mut [Option<Matched>]) {
    let all = matched.iter().flatten();
    let replaced: HashSet<String> = all.flat_map(|it| it.rule.replaces.iter().cloned()).collect();
    let is_replaced = |it: &Matched| replaced.contains(&it.rule.name) && it.rule.rate().is_some();
    for place in matched {
        if place.as_ref().is_some_and(is_replaced) {
            *place = None;
        }
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    #[error(
        "no rate limit configuration yet: see envoy in /readyz, and check envoy.xds.url and envoy.xds.node_id"
    )]
    NoConfiguration,
    #[error(transparent)]
    Batch(#[from] BatchError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[cfg(test)]
mod tests;
