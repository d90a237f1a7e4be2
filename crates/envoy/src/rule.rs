use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use headgate::{Algorithm, FailMode, LeasePolicy, Limit, LimitError, Outcome};
use headgate_config::{Bounded, Problem};
use headgate_ratelimit::{RateLimitRule, tally::Tally, usecase::applicable::ApplicableRule};
use headgate_resilience::{FailModeName, LeaseText};

use crate::{
    Metadata, Unit,
    file::{DescriptorEntry, RateLimitEntry},
    metrics::RuleCounters,
};

/// The limit of the descriptors that match one entry of a domain.
#[derive(Debug)]
pub struct DescriptorRule {
    pub(crate) amount: Amount,
    pub(crate) name: String,
    /// Names of the rules that do not apply to a request that this one matches.
    pub(crate) replaces: Vec<String>,
    /// Admits every request and only counts denials.
    pub(crate) shadow_mode: bool,
    /// Denies a request only together with all other rules in quota mode.
    pub(crate) quota_mode: bool,
    pub(crate) fail_mode: Option<FailMode>,
    /// Its hold fits into the window.
    pub(crate) lease: Option<LeasePolicy>,
    pub(crate) metadata: Option<Metadata>,
    pub(crate) label: String,
    pub(crate) metric_detail: MetricDetail,
    /// Cache of its counters in the metrics.
    pub(crate) counters: OnceLock<RuleCounters>,
    /// Counts of the decisions of a rule over attributes or by scope; `None` for an entry of a
    /// domain.
    pub(crate) tally: Option<Arc<Tally>>,
}

/// The amount that a rule admits.
#[derive(Debug)]
pub(crate) enum Amount {
    Unlimited,
    Limited(CountedRate),
}

/// A rate and its limit in the store.
#[derive(Debug)]
pub(crate) struct CountedRate {
    pub(crate) rate: Rate,
    /// A rate of 0 uses a counter of 1, which records the first denied request in the window.
    pub(crate) limit: Limit,
    /// End of its counters' keys: another algorithm or window has counters of its own.
    pub(crate) suffix: String,
}

/// A number of requests per window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Requests per window.
    pub requests: u32,
    /// Unit of the window.
    pub unit: Unit,
    /// Length of the window, in units.
    pub multiplier: u32,
}

/// Values of requests that become part of a rule's label in metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetricDetail {
    None,
    /// Values of the entries that ask for it (`value_to_metric`).
    Marked,
    /// Values of all entries (`detailed_metric`).
    All,
}

// === impl DescriptorRule ===

impl DescriptorRule {
    /// Returns the rule of `entry`, or `None` if it has no limit. Keys of problems are relative to
    /// the entry.
    pub(crate) fn new(
        entry: &DescriptorEntry,
        label: String,
        metric_detail: MetricDetail,
        shadow_mode: bool,
        problems: &mut Vec<Problem>,
    ) -> Option<Self> {
        let limit = entry.rate_limit.as_ref()?;
        let replaces = replaced(limit, problems);
        let amount = Amount::new(limit).map_err(|problem| problems.push(problem)).ok()?;
        let lease = leased(limit, &amount).map_err(|problem| problems.push(problem)).ok()?;
        Some(Self {
            amount,
            name: limit.name.clone(),
            replaces,
            shadow_mode: shadow_mode || entry.shadow_mode,
            quota_mode: entry.quota_mode,
            fail_mode: limit.fail_mode.map(FailModeName::get),
            lease,
            metadata: entry.metadata.clone().filter(|metadata| !metadata.is_empty()),
            label,
            metric_detail,
            counters: OnceLock::new(),
            tally: None,
        })
    }

    /// Returns the limit of a rule that applies to the attributes of a descriptor.
    pub(crate) fn from_applicable(applicable: &ApplicableRule) -> Self {
        let rule = &applicable.rule;
        let name = rule.rule().map(RateLimitRule::display_name).unwrap_or_default();
        let rate = Rate::of_window(applicable.units_per_window(), rule.window_seconds());
        // The key of its counter has a suffix of its own.
        let counted =
            CountedRate { rate, limit: applicable.limit().clone(), suffix: String::new() };
        Self {
            amount: Amount::Limited(counted),
            label: format!("rule:{name}"),
            name,
            replaces: Vec::new(),
            shadow_mode: false,
            quota_mode: false,
            fail_mode: Some(rule.fail_mode()),
            lease: Some(rule.lease()),
            metadata: None,
            metric_detail: MetricDetail::None,
            counters: OnceLock::new(),
            tally: Some(Arc::clone(rule.tally())),
        }
    }

    /// Returns the rule of a request's limit override; `None` if the rate is invalid.
    pub(crate) fn from_override(rate: Rate) -> Option<Self> {
        Some(Self {
            amount: Amount::of(rate, Algorithm::FixedWindow, None).ok()?,
            name: String::new(),
            replaces: Vec::new(),
            shadow_mode: false,
            quota_mode: false,
            fail_mode: None,
            lease: None,
            metadata: None,
            label: "override".to_owned(),
            metric_detail: MetricDetail::None,
            counters: OnceLock::new(),
            tally: None,
        })
    }

    /// The rate; `None` if unlimited.
    pub const fn rate(&self) -> Option<Rate> {
        match &self.amount {
            Amount::Unlimited => None,
            Amount::Limited(counted) => Some(counted.rate),
        }
    }

    /// The name of the limit in the file, or an empty string.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The label in metrics: keys, and the values that are in the file, such as
    /// `service.user_trial`.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Returns the metadata that Envoy is sent while the limit has room.
    pub const fn metadata(&self) -> Option<&Metadata> {
        self.metadata.as_ref()
    }
}

fn replaced(limit: &RateLimitEntry, problems: &mut Vec<Problem>) -> Vec<String> {
    for (index, replaced) in limit.replaces.iter().enumerate() {
        let message = match replaced.name.as_str() {
            "" => "expected the name of another rate limit",
            name if name == limit.name => "a rate limit cannot replace itself",
            _ => continue,
        };
        problems.push(Problem::new(format!("rate_limit.replaces[{index}].name"), message));
    }
    limit.replaces.iter().map(|replaced| replaced.name.clone()).collect()
}

/// Returns the lease of a limit, whose hold must fit into the window.
fn leased(limit: &RateLimitEntry, amount: &Amount) -> Result<Option<LeasePolicy>, Problem> {
    let invalid = |message: String| Problem::new("rate_limit.lease", message);
    match (limit.lease.map(LeaseText::get), amount) {
        (None, _) => Ok(None),
        (Some(_), Amount::Unlimited) => {
            Err(invalid("an unlimited rate has no lease: remove one of the two".to_owned()))
        }
        (Some(lease), Amount::Limited(counted)) => {
            let lease = lease.for_window(counted.rate.window());
            lease.map(Some).map_err(|error| invalid(error.to_string()))
        }
    }
}

// === impl Rate ===

impl Rate {
    /// Returns the rate of a window in seconds, with the longest unit.
    fn of_window(requests: u32, seconds: u32) -> Self {
        // Weeks, months and years are no units that people think of windows of rules in.
        let units = [Unit::Day, Unit::Hour, Unit::Minute];
        let fits = |unit: &Unit| u64::from(seconds) % unit.seconds() == 0;
        let unit = units.into_iter().find(fits).unwrap_or(Unit::Second);
        let multiplier = u64::from(seconds) / unit.seconds();
        Self { requests, unit, multiplier: u32::try_from(multiplier).unwrap_or(u32::MAX) }
    }

    /// Length of a window.
    pub fn window(&self) -> Duration {
        self.unit.window(self.multiplier)
    }
}

// === impl Amount ===

impl Amount {
    fn new(limit: &RateLimitEntry) -> Result<Self, Problem> {
        let unit = match (limit.unlimited, limit.unit) {
            // As in envoyproxy/ratelimit, a number beside it has no effect.
            (true, None) => return Ok(Self::Unlimited),
            (true, Some(_)) => {
                let message = "an unlimited rate has no unit: remove one of the two";
                return Err(Problem::new("rate_limit.unit", message));
            }
            (false, None) => {
                let message = format!("missing; expected {}", Unit::EXPECTED);
                return Err(Problem::new("rate_limit.unit", message));
            }
            (false, Some(unit)) => unit,
        };
        let requests = limit.requests_per_unit.map_or(0, |number| number.get() as u32);
        let multiplier = limit.unit_multiplier.map_or(1, |number| number.get() as u32);
        let algorithm = limit.algorithm.map_or(Algorithm::FixedWindow, |name| name.0);
        let burst = limit.burst.map(Bounded::get);
        Self::of(Rate { requests, unit, multiplier }, algorithm, burst)
            .map_err(|error| Problem::new("rate_limit", error.to_string()))
    }

    fn of(rate: Rate, algorithm: Algorithm, burst: Option<u64>) -> Result<Self, LimitError> {
        let algorithm = if rate.requests == 0 { Algorithm::FixedWindow } else { algorithm };
        let window = rate.window();
        let mut limit = Limit::new(algorithm, rate.requests.max(1).into(), window)?;
        if let Some(burst) = burst.filter(|_| rate.requests > 0) {
            limit = limit.with_burst(burst)?;
        }
        let suffix = format!(":{algorithm}:{}", window.as_secs());
        Ok(Self::Limited(CountedRate { rate, limit, suffix }))
    }
}

// === impl CountedRate ===

impl CountedRate {
    /// The most units that are ever available.
    pub(crate) const fn capacity(&self) -> u64 {
        if self.rate.requests == 0 { 0 } else { self.limit.capacity() }
    }

    /// Time until all units are back.
    pub(crate) fn reset_after(&self, outcome: &Outcome) -> Duration {
        // A fixed window ends whether or not anything was taken from it.
        match (self.limit.algorithm(), self.limit.window()) {
            (Algorithm::FixedWindow, Some(window)) => {
                let window = window.as_micros() as u64;
                Duration::from_micros(window - outcome.at.as_micros() % window)
            }
            _ => outcome.reset_after,
        }
    }
}
