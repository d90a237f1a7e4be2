//! What a request asks of the store: every descriptor in one batch.

use std::{collections::HashSet, sync::Arc};

use headgate::{
    Batch, BatchError, Check, Cost, FailMode, Key, Limiter, Outcome, Outcomes, Space, Stake,
    StoreError, Verb,
};

use super::{
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
    denied: DeniedConsumes,
    fail_mode: FailMode,
}

/// How one descriptor is decided.
enum Place {
    /// Nothing is configured for it, or something else takes its place.
    Free,
    Unlimited(Arc<Rule>),
    /// It never has room.
    Never(Arc<Rule>),
    /// By an answer of the store.
    Asked(usize),
}

/// One counter. Descriptors that share it are asked together.
struct Asked {
    subject: String,
    rule: Arc<Rule>,
    units: u64,
    gives_back: bool,
}

/// What counters' names begin with.
const PREFIX: &str = "envoy:";

// === impl Plan ===

impl Plan {
    pub(super) fn new(
        question: &Question<'_>,
        mut matched: Vec<Option<Matched>>,
        denied: DeniedConsumes,
        fail_mode: FailMode,
    ) -> Self {
        drop_replaced(&mut matched);
        let mut plan = Self {
            places: Vec::with_capacity(matched.len()),
            asked: Vec::with_capacity(matched.len()),
            denied,
            fail_mode,
        };
        for (matched, descriptor) in matched.into_iter().zip(&question.descriptors) {
            let place = matched.map_or(Place::Free, |matched| plan.place(matched, descriptor.hits));
            plan.places.push(place);
        }
        plan
    }

    fn place(&mut self, Matched { rule, subject, .. }: Matched, hits: Hits) -> Place {
        let (units, gives_back) = match hits {
            Hits::Take(units) => (units, false),
            Hits::Look => (0, false),
            Hits::GiveBack(units) => (units, true),
        };
        match &rule.amount {
            Amount::Unlimited => return Place::Unlimited(rule),
            Amount::Nothing(_) if gives_back => return Place::Free,
            Amount::Nothing(_) => return Place::Never(rule),
            Amount::Some { suffix, .. } => {
                let same = |asked: &Asked| {
                    asked.subject == subject
                        && asked.gives_back == gives_back
                        && asked.suffix() == suffix
                };
                if let Some(known) = self.asked.iter().position(same) {
                    self.asked[known].units = self.asked[known].units.saturating_add(units);
                    return Place::Asked(known);
                }
            }
        }
        self.asked.push(Asked { subject, rule, units, gives_back });
        Place::Asked(self.asked.len() - 1)
    }

    /// Asks the store, once; and once more where something is given back.
    pub(super) async fn ask(&self, limiter: &Limiter) -> Result<Vec<Option<Outcome>>, AskError> {
        let spaces: Vec<Space<'_>> =
            self.asked.iter().map(|asked| Space::new(PREFIX, asked.suffix())).collect();
        let mut answers = vec![None; self.asked.len()];
        for gives_back in [false, true] {
            let places = (0..self.asked.len()).filter(|i| self.asked[*i].gives_back == gives_back);
            let places: Vec<usize> = places.collect();
            if places.is_empty() {
                continue;
            }
            let checks = places.iter().map(|i| self.check(&self.asked[*i], &spaces[*i]));
            let batch = Batch::new(checks.collect::<Option<Vec<_>>>().unwrap_or_default())?;
            let verb = if gives_back { Verb::Refund } else { self.verb() };
            let outcomes: Outcomes = match limiter.each(verb, &batch).await {
                // What cannot be given back denies nobody.
                Err(_) if gives_back => continue,
                outcomes => outcomes?,
            };
            for (place, outcome) in places.into_iter().zip(outcomes) {
                answers[place] = Some(outcome);
            }
        }
        if self.denied == DeniedConsumes::All {
            self.use_up(limiter, &spaces, &mut answers).await;
        }
        Ok(answers)
    }

    /// Takes what is left where more was wanted: what is charged for after the fact has happened, and the next
    /// look must see it. It is another call, which only a charge that does not fit costs.
    async fn use_up(
        &self,
        limiter: &Limiter,
        spaces: &[Space<'_>],
        answers: &mut [Option<Outcome>],
    ) {
        let left = |place: usize| {
            let outcome = answers[place].filter(|it| !it.allowed && it.degraded.is_none())?;
            let asked = &self.asked[place];
            let wanted = asked.units > 0 && !asked.gives_back;
            (wanted && outcome.remaining > 0).then_some((place, outcome.remaining))
        };
        let left: Vec<(usize, u64)> = (0..self.asked.len()).filter_map(left).collect();
        let checks = left.iter().filter_map(|(place, units)| {
            let check = self.check_of(&self.asked[*place], &spaces[*place], *units)?;
            Some(check.with_stake(Stake::Alone))
        });
        let Ok(batch) = Batch::new(checks.collect::<Vec<_>>()) else {
            return;
        };
        // The request is denied all the same: who cannot be asked leaves something to the next.
        let Ok(taken) = limiter.each(Verb::Acquire, &batch).await else {
            return;
        };
        for ((place, _), taken) in left.into_iter().zip(taken) {
            answers[place] = answers[place].map(|it| Outcome { remaining: taken.remaining, ..it });
        }
    }

    /// Where the request is denied whatever the store says, and shall take nothing, it is only looked at.
    fn verb(&self) -> Verb {
        let denies = |rule: &Rule| !rule.shadow && !rule.quota;
        let never = self.places.iter().any(|place| match place {
            Place::Never(rule) => denies(rule),
            Place::Asked(i) => self.asked[*i].never_fits() && denies(&self.asked[*i].rule),
            Place::Free | Place::Unlimited(_) => false,
        });
        if never && self.denied == DeniedConsumes::None { Verb::Peek } else { Verb::Acquire }
    }

    fn check<'a>(&self, asked: &'a Asked, space: &'a Space<'a>) -> Option<Check<'a>> {
        let units = if asked.only_looks() { 1 } else { asked.units };
        self.check_of(asked, space, units)
    }

    fn check_of<'a>(
        &self,
        asked: &'a Asked,
        space: &'a Space<'a>,
        units: u64,
    ) -> Option<Check<'a>> {
        let Amount::Some { limit, .. } = &asked.rule.amount else {
            return None;
        };
        let units = if asked.gives_back { units.clamp(1, limit.capacity()) } else { units };
        // Names are made to be keys, and numbers to be costs.
        let key = Key::new(&asked.subject).ok()?.within(space);
        let check = Check::new(key, limit, Cost::new(units).ok()?).ok()?;
        let fail_mode = asked.rule.fail_mode.unwrap_or(self.fail_mode);
        Some(check.or_else(fail_mode).with_stake(self.stake(asked)))
    }

    fn stake(&self, asked: &Asked) -> Stake {
        let stops_nobody = asked.rule.shadow || asked.rule.quota;
        match self.denied {
            _ if asked.gives_back => Stake::Shared,
            DeniedConsumes::All if asked.only_looks() => Stake::Glance,
            DeniedConsumes::All => Stake::Alone,
            DeniedConsumes::None => match (asked.only_looks(), stops_nobody) {
                (true, true) => Stake::Glance,
                (true, false) => Stake::Look,
                (false, true) => Stake::Aside,
                (false, false) => Stake::Shared,
            },
        }
    }

    /// What the answers mean.
    pub(super) fn verdict(self, answers: &[Option<Outcome>]) -> Verdict {
        let Self { places, asked, .. } = self;
        let status = |place| match place {
            Place::Free => Status::free(0),
            Place::Unlimited(rule) => Status { rule: Some(rule), ..Status::free(u32::MAX.into()) },
            Place::Never(rule) => Status { over: true, rule: Some(rule), ..Status::free(0) },
            Place::Asked(i) => asked[i].status(answers[i].as_ref()),
        };
        let statuses: Vec<Status> = places.into_iter().map(status).collect();
        Verdict { over: is_over(&statuses), statuses }
    }
}

/// Any limit denies by itself; limits in quota mode only when all of them do.
fn is_over(statuses: &[Status]) -> bool {
    let of_kind = |quota: bool| {
        statuses.iter().filter(move |it| {
            it.rule.as_ref().is_some_and(|rule| rule.quota == quota && !rule.shadow)
        })
    };
    let quotas = of_kind(true).count();
    of_kind(false).any(|status| status.over)
        || (quotas > 0 && of_kind(true).all(|status| status.over))
}

/// Where a limit matched that replaces others, those do not count.
fn drop_replaced(matched: &mut [Option<Matched>]) {
    let all = matched.iter().flatten();
    let replaced: HashSet<String> = all.flat_map(|it| it.rule.replaces.iter().cloned()).collect();
    for place in matched {
        if place.as_ref().is_some_and(|it| replaced.contains(&it.rule.name)) {
            *place = None;
        }
    }
}

// === impl Asked ===

impl Asked {
    fn suffix(&self) -> &str {
        match &self.rule.amount {
            Amount::Some { suffix, .. } => suffix,
            Amount::Unlimited | Amount::Nothing(_) => "",
        }
    }

    /// Whether more is wanted than there ever is.
    fn never_fits(&self) -> bool {
        matches!(&self.rule.amount, Amount::Some { limit, .. } if self.units > limit.capacity())
            && !self.gives_back
    }

    fn only_looks(&self) -> bool {
        self.units == 0 || self.never_fits()
    }

    fn status(&self, answer: Option<&Outcome>) -> Status {
        let rule = Some(Arc::clone(&self.rule));
        let Some(outcome) = answer else {
            return Status { rule, ..Status::free(0) };
        };
        let never = self.never_fits();
        let retry_after = (!never).then_some(outcome.retry_after);
        let over = never || !outcome.allowed;
        let Outcome { remaining, reset_after, .. } = *outcome;
        Status { rule, over, remaining, reset_after, retry_after }
    }
}

/// Why the store did not answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    #[error(transparent)]
    Batch(#[from] BatchError),
    #[error(transparent)]
    Store(#[from] StoreError),
}
