use std::{sync::OnceLock, time::Duration};

use headgate::{Algorithm, FailMode, Limit, LimitError, Outcome};
use headgate_config::Problem;

use super::{
    file::{DescriptorEntry, RateLimitEntry},
    metadata::Metadata,
    unit::Unit,
};
use crate::metrics::EnvoySeries;

/// What one descriptor allows.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(super) amount: Amount,
    pub(super) name: String,
    pub(super) replaces: Vec<String>,
    /// It is let through, and only counted.
    pub(super) shadow: bool,
    /// It denies only together with all others of its kind.
    pub(super) quota: bool,
    pub(super) fail_mode: Option<FailMode>,
    /// What Envoy is told while it has room.
    pub(super) metadata: Option<Metadata>,
    /// Its name in metrics: keys, and values that stand in the file.
    pub(super) label: String,
    /// Whether metrics name values that callers sent, too.
    pub(super) detail: Detail,
    /// Its numbers, looked up once.
    pub(super) series: OnceLock<EnvoySeries>,
}

/// How much is allowed.
#[derive(Debug)]
pub(super) enum Amount {
    Unlimited,
    Limited(Counted),
}

/// A rate, and how it is counted.
#[derive(Debug)]
pub(super) struct Counted {
    pub(super) rate: Rate,
    /// A rate of 0 uses a counter of 1, which records the first denied request in the window.
    pub(super) limit: Limit,
    /// What its counters' names end with: another way of counting starts anew.
    pub(super) suffix: String,
}

/// So many in so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(crate) requests: u32,
    pub(crate) unit: Unit,
    /// How many units a window lasts.
    pub(crate) times: u32,
}

/// Which values that callers sent metrics name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    None,
    /// Those of descriptors that ask for it.
    Some,
    All,
}

// === impl Rule ===

impl Rule {
    /// The rule of `entry`; a problem's key is one of its keys.
    pub(super) fn new(
        entry: &DescriptorEntry,
        label: String,
        detail: Detail,
        shadow: bool,
    ) -> Result<Option<Self>, Problem> {
        let Some(limit) = &entry.rate_limit else {
            return Ok(None);
        };
        Ok(Some(Self {
            amount: Amount::new(limit)?,
            name: limit.name.clone(),
            replaces: replaced(limit)?,
            shadow: shadow || entry.shadow_mode,
            quota: entry.quota_mode,
            fail_mode: limit.fail_mode.map(crate::config::FailModeName::get),
            metadata: entry.metadata.clone().filter(|metadata| !metadata.is_empty()),
            label,
            detail,
            series: OnceLock::new(),
        }))
    }

    /// The rule that a request brings along; `None` if it is no rate.
    pub(super) fn overriding(rate: Rate) -> Option<Self> {
        Some(Self {
            amount: Amount::of(rate, Algorithm::FixedWindow, None).ok()?,
            name: String::new(),
            replaces: Vec::new(),
            shadow: false,
            quota: false,
            fail_mode: None,
            metadata: None,
            label: "override".to_owned(),
            detail: Detail::None,
            series: OnceLock::new(),
        })
    }

    /// The rate, unless there is none.
    pub(crate) const fn rate(&self) -> Option<Rate> {
        match &self.amount {
            Amount::Unlimited => None,
            Amount::Limited(counted) => Some(counted.rate),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Its keys, and values that stand in the file.
    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    pub(crate) const fn metadata(&self) -> Option<&Metadata> {
        self.metadata.as_ref()
    }
}

fn replaced(limit: &RateLimitEntry) -> Result<Vec<String>, Problem> {
    for (place, replaced) in limit.replaces.iter().enumerate() {
        let wrong = match replaced.name.as_str() {
            "" => "expected the name of another rate limit",
            name if name == limit.name => "a rate limit cannot replace itself",
            _ => continue,
        };
        return Err(Problem::new(format!("rate_limit.replaces[{place}].name"), wrong));
    }
    Ok(limit.replaces.iter().map(|replaced| replaced.name.clone()).collect())
}

// === impl Rate ===

impl Rate {
    /// How long a window lasts.
    pub(crate) fn window(&self) -> Duration {
        self.unit.window(self.times)
    }
}

// === impl Amount ===

impl Amount {
    fn new(limit: &RateLimitEntry) -> Result<Self, Problem> {
        let wrong =
            |key: &str, message: &str| Err(Problem::new(format!("rate_limit{key}"), message));
        if limit.unlimited {
            return match limit.unit {
                Some(_) => wrong(".unit", "unlimited has no unit: remove one or the other"),
                // As in envoyproxy/ratelimit, a number beside it means nothing.
                None => Ok(Self::Unlimited),
            };
        }
        let Some(unit) = limit.unit else {
            return wrong(
                "",
                "unit is missing: expected second, minute, hour, day, week, month or year",
            );
        };
        let requests = limit.requests_per_unit.map_or(0, |number| number.get() as u32);
        let times = limit.unit_multiplier.map_or(1, |times| times.get() as u32);
        let algorithm = limit.algorithm.map_or(Algorithm::FixedWindow, |word| word.0);
        let burst = limit.burst.map(headgate_config::Bounded::get);
        Self::of(Rate { requests, unit, times }, algorithm, burst)
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
        Ok(Self::Limited(Counted { rate, limit, suffix }))
    }
}

// === impl Counted ===

impl Counted {
    /// How much there ever is.
    pub(super) const fn capacity(&self) -> u64 {
        if self.rate.requests == 0 { 0 } else { self.limit.capacity() }
    }

    /// How long until everything is back.
    pub(super) fn until_reset(&self, outcome: &Outcome) -> Duration {
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
