//! Periods: days or months of a policy's time zone.

use std::{fmt, str::FromStr, time::Duration};

use headgate::{
    Limit, LimitError, Timestamp,
    algorithm::{Calendar, Period},
    limit::Parameters,
};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use thiserror::Error;

/// The length of a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum QuotaPeriod {
    /// From midnight to midnight.
    Daily,
    /// From the first of a month to the next.
    Monthly,
}

/// Unknown period name.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("must be one of: daily, monthly")]
pub struct UnknownPeriod;

/// One period: a day or a month, with its name and bounds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PeriodSpan {
    /// `2026-02-23` or `2026-02`, in the policy's time zone.
    pub name: String,
    /// Inclusive start.
    pub start: Timestamp,
    /// Exclusive end, at which usage starts over.
    pub end: Timestamp,
}

/// The periods of a time zone.
#[derive(Clone, Debug)]
pub struct PeriodCalendar {
    calendar: Calendar,
    zone: TimeZone,
}

// === impl QuotaPeriod ===

impl QuotaPeriod {
    /// All periods.
    pub const ALL: [Self; 2] = [Self::Daily, Self::Monthly];

    /// Returns the name in APIs and in the database.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Daily => "daily",
            Self::Monthly => "monthly",
        }
    }

    /// Returns the engine's period.
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

// === impl PeriodSpan ===

impl PeriodSpan {
    /// Time before its start and after its end during which it still counts as the current period:
    /// as long as an increment may wait for its commit.
    pub const TOLERANCE: Duration = Duration::from_secs(60);

    /// Returns `true` if it is the current period at `now` by the ledger's clock, with tolerance.
    pub fn is_current(&self, now: Timestamp) -> bool {
        self.start <= now + Self::TOLERANCE && now < self.end + Self::TOLERANCE
    }

    /// Returns `true` if it contains `moment`.
    pub fn contains(&self, moment: Timestamp) -> bool {
        self.start <= moment && moment < self.end
    }

    /// Returns its last millisecond, as APIs show it.
    pub fn last(&self) -> Timestamp {
        Timestamp::from_micros(self.end.as_micros().saturating_sub(1_000))
    }
}

// === impl PeriodCalendar ===

impl PeriodCalendar {
    /// Creates the calendar of the zone with this IANA name, or of UTC.
    pub fn new(period: QuotaPeriod, zone: Option<&str>) -> Result<Self, LimitError> {
        let zone = zone.unwrap_or("UTC");
        let limit = Limit::calendar(1, period.calendar(), zone)?;
        let Parameters::Calendar(calendar) = limit.parameters() else {
            return Err(LimitError::NeedsPeriod);
        };
        let unknown = |_| LimitError::UnknownZone(zone.chars().take(64).collect());
        // That of the limit, too: every server must know the same names.
        let zone = TimeZoneDatabase::bundled().get(zone).map_err(unknown)?;
        Ok(Self { calendar: calendar.clone(), zone })
    }

    /// Returns the period that contains `moment`.
    pub fn at(&self, moment: Timestamp) -> PeriodSpan {
        let (start, end) = self.calendar.bounds(moment);
        let first = i64::try_from(start).unwrap_or(i64::MAX);
        let first = jiff::Timestamp::from_microsecond(first).unwrap_or(jiff::Timestamp::MAX);
        let format = match self.calendar.period() {
            Period::Day => "%Y-%m-%d",
            Period::Month => "%Y-%m",
        };
        PeriodSpan {
            name: first.to_zoned(self.zone.clone()).strftime(format).to_string(),
            start: Timestamp::from_micros(start),
            end: Timestamp::from_micros(end),
        }
    }
}

#[cfg(test)]
mod tests;
