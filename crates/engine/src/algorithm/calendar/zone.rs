//! Time zones, from the bundled database alone: that of a system differs from machine to machine,
//! and has names such as `localtime` that mean another zone on each.

use jiff::{
    ToSpan,
    civil::Date,
    tz::{TimeZone, TimeZoneDatabase},
};

use super::Period;
use crate::Timestamp;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Zone(TimeZone);

impl Zone {
    /// The zone with this IANA name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        TimeZoneDatabase::bundled().get(name).ok().map(Self)
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.0.iana_name()
    }

    /// See [`Calendar::bounds`](super::Calendar::bounds).
    pub(super) fn bounds(&self, period: Period, now: Timestamp) -> (u64, u64) {
        let micros = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
        let instant = jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::MAX);
        let today = instant.to_zoned(self.0.clone()).date();
        let (first, next) = match period {
            Period::Day => (today, today.saturating_add(1.day())),
            Period::Month => {
                let first = today.first_of_month();
                (first, first.saturating_add(1.month()))
            }
        };
        (self.midnight(first, now), self.midnight(next, now))
    }

    fn midnight(&self, date: Date, now: Timestamp) -> u64 {
        // Only the last representable day has no midnight after it.
        date.to_zoned(self.0.clone()).map_or(now.as_micros() + 1, |midnight| {
            u64::try_from(midnight.timestamp().as_microsecond()).unwrap_or(0)
        })
    }
}
