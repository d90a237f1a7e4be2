//! The request to one counter, and its answer.

use std::sync::Arc;

use headgate::{Check, CheckMode, Cost, Key, KeySpace, Outcome, OwnedKey};

use crate::{
    DeniedConsumes, DescriptorRule, DescriptorStatus, Settings,
    rule::{Amount, CountedRate},
};

/// The request to one counter. Descriptors that share a counter are decided together.
pub(crate) struct CounterRequest {
    pub(crate) key: CounterKey,
    pub(crate) rule: Arc<DescriptorRule>,
    /// Units that all of its descriptors ask for.
    pub(crate) units: u64,
    pub(crate) is_refund: bool,
}

/// The key of a counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CounterKey {
    /// That of a descriptor in a domain.
    Descriptor(String),
    /// That of a rule over attributes or by scope, which other callers share.
    Rule(OwnedKey),
}

/// Prefix of the keys of descriptors.
const PREFIX: &str = "envoy:";

/// The part of a counter request that one descriptor asks for.
#[derive(Clone, Copy)]
pub(crate) struct DescriptorShare {
    pub(crate) units: u64,
    /// Units of this descriptor and those before it.
    pub(crate) cumulative: u64,
}

/// The answer of a counter.
#[derive(Clone, Copy)]
pub(crate) struct CounterAnswer {
    pub(crate) outcome: Outcome,
    /// Units that were left before the request.
    pub(crate) before: u64,
    /// True if the request took units.
    pub(crate) taken: bool,
}

// === impl CounterRequest ===

impl CounterRequest {
    fn counted(&self) -> Option<&CountedRate> {
        match &self.rule.amount {
            Amount::Unlimited => None,
            Amount::Limited(counted) => Some(counted),
        }
    }

    pub(crate) fn suffix(&self) -> &str {
        self.counted().map_or("", |counted| &counted.suffix)
    }

    /// Returns the space of its key.
    pub(crate) fn space(&self) -> KeySpace<'_> {
        match &self.key {
            CounterKey::Descriptor(_) => KeySpace::new(PREFIX, self.suffix()),
            CounterKey::Rule(key) => key.space(),
        }
    }

    /// Returns true if the limit is 0.
    fn denies_all(&self) -> bool {
        self.counted().is_some_and(|counted| counted.capacity() == 0)
    }

    /// Returns true if it asks for more units than the limit ever has.
    pub(crate) fn exceeds_capacity(&self) -> bool {
        self.units > self.capacity() && !self.is_refund
    }

    /// Returns the maximum number of units.
    pub(crate) fn capacity(&self) -> u64 {
        self.counted().map_or(u64::MAX, CountedRate::capacity)
    }

    fn is_peek(&self) -> bool {
        self.units == 0 || self.exceeds_capacity()
    }

    /// Returns true if its denial alone denies the request.
    pub(crate) fn is_enforced(&self, settings: Settings) -> bool {
        !self.rule.shadow_mode && !self.rule.quota_mode && !settings.quota_mode
    }

    /// Returns true if the remaining units are taken although more were asked for: where denials
    /// consume, and for a limit of 0, so that the next peek sees that a request was denied.
    pub(crate) fn uses_up(&self, answer: &CounterAnswer, settings: Settings) -> bool {
        let consumes = settings.denied_consumes == DeniedConsumes::All || self.denies_all();
        let denied = !answer.outcome.allowed || self.exceeds_capacity();
        let takes = self.units > 0 && !self.is_refund;
        consumes && denied && takes && answer.outcome.degraded.is_none() && answer.before > 0
    }

    pub(crate) fn check<'a>(
        &'a self,
        space: &'a KeySpace<'a>,
        settings: Settings,
    ) -> Option<Check<'a>> {
        let units = if self.is_peek() { 1 } else { self.units };
        let check = self.check_of(space, units, settings)?;
        Some(check.with_mode(self.mode(settings)))
    }

    /// Returns a check that takes `units` independently of the other checks of its batch.
    pub(crate) fn charge<'a>(
        &'a self,
        space: &'a KeySpace<'a>,
        units: u64,
        settings: Settings,
    ) -> Option<Check<'a>> {
        Some(self.check_of(space, units, settings)?.with_mode(CheckMode::Independent))
    }

    fn check_of<'a>(
        &'a self,
        space: &'a KeySpace<'a>,
        units: u64,
        settings: Settings,
    ) -> Option<Check<'a>> {
        let CountedRate { limit, rate, .. } = self.counted()?;
        let units = if self.is_refund { units.clamp(1, limit.capacity()) } else { units };
        // Counter names are valid keys, and units valid costs.
        let key = match &self.key {
            CounterKey::Descriptor(name) => Key::new(name).ok()?.within(space),
            CounterKey::Rule(key) => key.as_key(space),
        };
        let check = Check::new(key, limit, Cost::new(units).ok()?).ok()?;
        let lease = self.rule.lease.unwrap_or(settings.lease).shortened_to(rate.window());
        let check = check.with_optional_extra(lease.extra(limit));
        Some(check.with_fail_mode(self.rule.fail_mode.unwrap_or(settings.fail_mode)))
    }

    pub(crate) fn mode(&self, settings: Settings) -> CheckMode {
        match settings.denied_consumes {
            _ if self.is_refund => CheckMode::Required,
            DeniedConsumes::All if self.is_peek() => CheckMode::Report,
            DeniedConsumes::All => CheckMode::Independent,
            DeniedConsumes::None => match (self.is_peek(), self.is_enforced(settings)) {
                (true, false) => CheckMode::Report,
                (true, true) => CheckMode::Probe,
                (false, false) => CheckMode::Optional,
                (false, true) => CheckMode::Required,
            },
        }
    }

    /// Converts the store's `outcome` to an answer. `taken` is true if the store took the units.
    pub(crate) fn answer(&self, outcome: Outcome, taken: bool) -> CounterAnswer {
        let taken = taken && !self.is_peek() && !self.is_refund;
        let units = if taken { self.units } else { 0 };
        CounterAnswer { outcome, before: outcome.remaining.saturating_add(units), taken }
    }

    /// Returns the status of the descriptor that asked for `share`.
    pub(crate) fn status(
        &self,
        share: DescriptorShare,
        answer: Option<&CounterAnswer>,
    ) -> DescriptorStatus {
        let rule = Some(Arc::clone(&self.rule));
        let (Some(answer), Some(counted)) = (answer, self.counted()) else {
            return DescriptorStatus { rule, ..DescriptorStatus::unlimited(0) };
        };
        let CounterAnswer { outcome, before, taken } = answer;
        let over_limit = self.is_over_limit(share, answer);
        let remaining = match () {
            () if self.denies_all() => 0,
            () if over_limit || !taken => outcome.remaining,
            () => before.saturating_sub(share.cumulative),
        };
        let retry_after = (!self.exceeds_capacity()).then_some(outcome.retry_after);
        let reset_after = counted.reset_after(outcome);
        let leased = outcome.leased;
        DescriptorStatus { rule, over_limit, remaining, reset_after, retry_after, leased }
    }

    /// Descriptors that share a counter take one after the other: the first may fit where the last
    /// does not.
    fn is_over_limit(&self, share: DescriptorShare, answer: &CounterAnswer) -> bool {
        let CounterAnswer { outcome, before, .. } = answer;
        if self.denies_all() {
            return share.units > 0 || *before == 0;
        }
        let all_fit = outcome.allowed && !self.exceeds_capacity();
        let has_followers = share.cumulative < self.units && outcome.degraded.is_none();
        let fits = all_fit || (has_followers && *before > 0 && share.cumulative <= *before);
        !fits
    }
}
