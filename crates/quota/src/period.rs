//! How long a quota lasts: a day or a month of the policy's time zone.

use std::{fmt, str::FromStr, time::Duration};

use headgate::{
    Limit, LimitError, Timestamp,
    algorithm::{Calendar, Period},
    limit::Rule,
};
use jiff::tz::TimeZone;
use thiserror::Error;

/// How long a quota lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum QuotaPeriod {
    /// From one midnight to the next.
    Daily,
    /// From one first of the month to the next.
    Monthly,
}

/// A name that is no period's.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("must be one of: daily, monthly")]
pub struct UnknownPeriod;

/// One day or one month: the first moment that is in it, and the first that is not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// `2026-02-23` or `2026-02`, by the zone's calendar.
    pub name: String,
    /// Its first moment.
    pub start: Timestamp,
    /// The first moment after it, when everything is back.
    pub end: Timestamp,
}

/// The days or months of a time zone.
#[derive(Clone, Debug)]
pub struct Spans {
    calendar: Calendar,
    zone: TimeZone,
}

// === impl QuotaPeriod ===

impl QuotaPeriod {
    /// Every period.
    pub const ALL: [Self; 2] = [Self::Daily, Self::Monthly];

    /// The name in APIs and in the database.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Daily => "daily",
            Self::Monthly => "monthly",
        }
    }

    /// The engine's word for it.
    pub const fn calendar(self) -> Period {
        match self {
            Self::Daily => Period::Day,
            Self::Monthly => Period::Month,
        }
    }
}

impl FromStr for QuotaPeriod {
    type Err = UnknownPeriod;

    fn from_str(name: &str) -> Result<Self, UnknownPeriod> {
        Self::ALL.into_iter().find(|period| period.name() == name).ok_or(UnknownPeriod)
    }
}

impl fmt::Display for QuotaPeriod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

// === impl Span ===

impl Span {
    /// How long before its start and after its end it is still taken for the present one: as long as
    /// an increment may wait for its commit.
    pub const TOLERANCE: Duration = Duration::from_secs(60);

    /// Whether it is the present one when the ledger's clock shows `now`.
    pub fn is_present(&self, now: Timestamp) -> bool {
        self.start <= now + Self::TOLERANCE && now < self.end + Self::TOLERANCE
    }

    /// Whether `moment` is in it.
    pub fn contains(&self, moment: Timestamp) -> bool {
        self.start <= moment && moment < self.end
    }

    /// The last millisecond that is in it: how an end is shown to people.
    pub fn last(&self) -> Timestamp {
        Timestamp::from_micros(self.end.as_micros().saturating_sub(1_000))
    }
}

// === impl Spans ===

impl Spans {
    /// The days or months of the zone with this IANA name, or of UTC.
    pub fn new(period: QuotaPeriod, zone: Option<&str>) -> Result<Self, LimitError> {
        let zone = zone.unwrap_or("UTC");
        let limit = Limit::calendar(1, period.calendar(), zone)?;
        let Rule::Calendar(calendar) = limit.rule() else {
            return Err(LimitError::NeedsPeriod);
        };
        let unknown = |_| LimitError::UnknownZone(zone.chars().take(64).collect());
        Ok(Self { calendar: calendar.clone(), zone: TimeZone::get(zone).map_err(unknown)? })
    }

    /// The one that `moment` is in.
    pub fn at(&self, moment: Timestamp) -> Span {
        let (start, end) = self.calendar.bounds(moment);
        let first = i64::try_from(start).unwrap_or(i64::MAX);
        let first = jiff::Timestamp::from_microsecond(first).unwrap_or(jiff::Timestamp::MAX);
        let format = match self.calendar.period() {
            Period::Day => "%Y-%m-%d",
            Period::Month => "%Y-%m",
        };
        Span {
            name: first.to_zoned(self.zone.clone()).strftime(format).to_string(),
            start: Timestamp::from_micros(start),
            end: Timestamp::from_micros(end),
        }
    }
}

#[cfg(test)]
mod tests;
