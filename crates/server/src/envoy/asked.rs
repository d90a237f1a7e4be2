//! One counter that a request asks about: by one of its descriptors, or by several.

use std::sync::Arc;

use headgate::{Check, Cost, FailMode, Key, Outcome, Space, Stake};

use super::{
    rule::{Amount, Counted, Rule},
    verdict::Status,
};
use crate::config::DeniedConsumes;

/// One counter. Descriptors that share it are asked together.
pub(super) struct Asked {
    pub(super) subject: String,
    pub(super) rule: Arc<Rule>,
    /// What all of them want.
    pub(super) units: u64,
    pub(super) gives_back: bool,
}

/// What one descriptor wants of a counter.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub(super) own: u64,
    /// Together with those before it.
    pub(super) upto: u64,
}

/// What a counter answered.
#[derive(Clone, Copy)]
pub(super) struct Answer {
    pub(super) outcome: Outcome,
    /// What was left before the request.
    pub(super) before: u64,
    /// Whether the request took something.
    pub(super) taken: bool,
}

/// How the operator wants all counters to be asked.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    pub(super) denied: DeniedConsumes,
    pub(super) fail_mode: FailMode,
    /// Every limit is in quota mode.
    pub(super) quota: bool,
}

// === impl Asked ===

impl Asked {
    fn counted(&self) -> Option<&Counted> {
        match &self.rule.amount {
            Amount::Unlimited => None,
            Amount::Limited(counted) => Some(counted),
        }
    }

    pub(super) fn suffix(&self) -> &str {
        self.counted().map_or("", |counted| &counted.suffix)
    }

    /// Whether nothing is ever allowed.
    fn allows_nothing(&self) -> bool {
        self.counted().is_some_and(|counted| counted.capacity() == 0)
    }

    /// Whether more is wanted than there ever is.
    pub(super) fn never_fits(&self) -> bool {
        self.units > self.capacity() && !self.gives_back
    }

    /// The most that is ever allowed.
    pub(super) fn capacity(&self) -> u64 {
        self.counted().map_or(u64::MAX, Counted::capacity)
    }

    fn only_looks(&self) -> bool {
        self.units == 0 || self.never_fits()
    }

    /// Whether its refusal denies the request by itself.
    pub(super) fn denies(&self, terms: Terms) -> bool {
        !self.rule.shadow && !self.rule.quota && !terms.quota
    }

    /// Whether what is left is taken although more was wanted: where denials consume, and of a limit of nothing, so
    /// that the next look sees that somebody wanted something.
    pub(super) fn is_used_up(&self, answer: &Answer, terms: Terms) -> bool {
        let counts = terms.denied == DeniedConsumes::All || self.allows_nothing();
        let denied = !answer.outcome.allowed || self.never_fits();
        let wants = self.units > 0 && !self.gives_back;
        counts && denied && wants && answer.outcome.degraded.is_none() && answer.before > 0
    }

    pub(super) fn check<'a>(&'a self, space: &'a Space<'a>, terms: Terms) -> Option<Check<'a>> {
        let units = if self.only_looks() { 1 } else { self.units };
        let check = self.check_of(space, units, terms)?;
        Some(check.with_stake(self.stake(terms)))
    }

    /// Whatever the others say, it takes so much.
    pub(super) fn charge<'a>(
        &'a self,
        space: &'a Space<'a>,
        units: u64,
        terms: Terms,
    ) -> Option<Check<'a>> {
        Some(self.check_of(space, units, terms)?.with_stake(Stake::Alone))
    }

    fn check_of<'a>(&'a self, space: &'a Space<'a>, units: u64, terms: Terms) -> Option<Check<'a>> {
        let limit = &self.counted()?.limit;
        let units = if self.gives_back { units.clamp(1, limit.capacity()) } else { units };
        // Names are made to be keys, and numbers to be costs.
        let key = Key::new(&self.subject).ok()?.within(space);
        let check = Check::new(key, limit, Cost::new(units).ok()?).ok()?;
        Some(check.or_else(self.rule.fail_mode.unwrap_or(terms.fail_mode)))
    }

    pub(super) fn stake(&self, terms: Terms) -> Stake {
        match terms.denied {
            _ if self.gives_back => Stake::Shared,
            DeniedConsumes::All if self.only_looks() => Stake::Glance,
            DeniedConsumes::All => Stake::Alone,
            DeniedConsumes::None => match (self.only_looks(), self.denies(terms)) {
                (true, false) => Stake::Glance,
                (true, true) => Stake::Look,
                (false, false) => Stake::Aside,
                (false, true) => Stake::Shared,
            },
        }
    }

    /// What `outcome` says of the time before it.
    pub(super) fn answer(&self, outcome: Outcome, taken: bool) -> Answer {
        let taken = taken && !self.only_looks() && !self.gives_back;
        let units = if taken { self.units } else { 0 };
        Answer { outcome, before: outcome.remaining.saturating_add(units), taken }
    }

    /// How the descriptor stands that wants `part`.
    pub(super) fn status(&self, part: Part, answer: Option<&Answer>) -> Status {
        let rule = Some(Arc::clone(&self.rule));
        let (Some(answer), Some(counted)) = (answer, self.counted()) else {
            return Status { rule, ..Status::free(0) };
        };
        let Answer { outcome, before, taken } = answer;
        let over = self.is_over(part, answer);
        let remaining = match () {
            () if self.allows_nothing() => 0,
            () if over || !taken => outcome.remaining,
            () => before.saturating_sub(part.upto),
        };
        let retry_after = (!self.never_fits()).then_some(outcome.retry_after);
        let reset_after = counted.until_reset(outcome);
        Status { rule, over, remaining, reset_after, retry_after }
    }

    /// Descriptors that share a counter take one after the other: what the last does not find, the first may have.
    fn is_over(&self, part: Part, answer: &Answer) -> bool {
        let Answer { outcome, before, .. } = answer;
        if self.allows_nothing() {
            return part.own > 0 || *before == 0;
        }
        let all_fit = outcome.allowed && !self.never_fits();
        let is_first = part.upto < self.units && outcome.degraded.is_none();
        let fits = all_fit || (is_first && *before > 0 && part.upto <= *before);
        !fits
    }
}
