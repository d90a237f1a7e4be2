//! Cron expressions.

mod field;

use std::{fmt, str::FromStr};

use headgate::Timestamp;
use jiff::{
    ToSpan,
    civil::{Date, DateTime, Time},
    tz::TimeZone,
};
use thiserror::Error;

use self::field::Field;

/// A cron expression of five fields, or six with seconds first, in UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    text: String,
    seconds: Field,
    minutes: Field,
    hours: Field,
    days: Field,
    months: Field,
    weekdays: Field,
}

/// An invalid cron expression.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CronError {
    /// Wrong number of fields.
    #[error("expected 5 or 6 fields (seconds first), got {0}")]
    Fields(usize),
    /// A field is invalid.
    #[error("the {name} must be {expected}, got {text:?}")]
    Field {
        /// Name of the field.
        name: &'static str,
        /// Values that it accepts.
        expected: String,
        /// Its text.
        text: String,
    },
    /// It names a date that does not exist.
    #[error("schedule never fires (no such date)")]
    Never,
}

/// Maximum wait: 8 years between two 29ths of February.
const LONGEST_WAIT_DAYS: usize = 8 * 366;

/// Maximum length of an expression.
const MAX_BYTES: usize = 256;

// === impl Cron ===

impl Cron {
    /// Returns `0 0 * * *`: every midnight.
    pub fn daily() -> Self {
        Self::at_midnight("0 0 * * *", Field::any(&field::DAY))
    }

    /// Returns `0 0 1 * *`: the first midnight of every month.
    pub fn monthly() -> Self {
        Self::at_midnight("0 0 1 * *", Field::only(1))
    }

    fn at_midnight(text: &str, days: Field) -> Self {
        Self {
            text: text.to_owned(),
            seconds: Field::only(0),
            minutes: Field::only(0),
            hours: Field::only(0),
            days,
            months: Field::any(&field::MONTH),
            weekdays: Field::any(&field::WEEKDAY),
        }
    }

    /// Returns the first time after `time` at which it fires.
    pub fn next_after(&self, time: Timestamp) -> Option<Timestamp> {
        let micros = i64::try_from(time.as_micros()).ok()?;
        let instant = jiff::Timestamp::from_microsecond(micros).ok()?;
        let from = instant.to_zoned(TimeZone::UTC).datetime();
        // Rounded up to the next second.
        let from = from.with().subsec_nanosecond(0).build().ok()?.checked_add(1.second()).ok()?;
        let next = self.next_from(from)?;
        let instant = next.to_zoned(TimeZone::UTC).ok()?.timestamp();
        Some(Timestamp::from_micros(u64::try_from(instant.as_microsecond()).ok()?))
    }

    fn next_from(&self, from: DateTime) -> Option<DateTime> {
        let mut date = from.date();
        let mut not_before = from.time();
        for _ in 0..LONGEST_WAIT_DAYS {
            if self.matches_day(date)
                && let Some(time) = self.time_from(not_before)
            {
                return Some(date.to_datetime(time));
            }
            date = date.tomorrow().ok()?;
            not_before = Time::midnight();
        }
        None
    }

    /// Returns true if the schedule fires on `date`. As in cron, if both day fields are restricted,
    /// either of them is enough.
    fn matches_day(&self, date: Date) -> bool {
        let weekday = date.weekday().to_sunday_zero_offset();
        let by_day = self.days.has(date.day());
        // Both 0 and 7 are Sunday.
        let by_weekday = self.weekdays.has(weekday) || (weekday == 0 && self.weekdays.has(7));
        let matches = match (self.days.is_any(), self.weekdays.is_any()) {
            (false, false) => by_day || by_weekday,
            _ => by_day && by_weekday,
        };
        matches && self.months.has(date.month())
    }

    fn time_from(&self, earliest: Time) -> Option<Time> {
        let hour = self.hours.first_from(earliest.hour())?;
        if hour == earliest.hour() {
            let minute = self.minutes.first_from(earliest.minute());
            if minute == Some(earliest.minute())
                && let Some(second) = self.seconds.first_from(earliest.second())
            {
                return Time::new(hour, earliest.minute(), second, 0).ok();
            }
            let next = earliest.minute() + 1;
            if let Some(minute) = self.minutes.first_from(next) {
                return Time::new(hour, minute, self.seconds.first_from(0)?, 0).ok();
            }
        }
        let hour = self.hours.first_from(earliest.hour() + i8::from(hour == earliest.hour()))?;
        Time::new(hour, self.minutes.first_from(0)?, self.seconds.first_from(0)?, 0).ok()
    }
}

impl FromStr for Cron {
    type Err = CronError;

    fn from_str(text: &str) -> Result<Self, CronError> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [seconds, minutes, hours, days, months, weekdays] = match fields[..] {
            _ if text.len() > MAX_BYTES => return Err(CronError::Fields(fields.len())),
            [minutes, hours, days, months, weekdays] => {
                ["0", minutes, hours, days, months, weekdays]
            }
            [seconds, minutes, hours, days, months, weekdays] => {
                [seconds, minutes, hours, days, months, weekdays]
            }
            _ => return Err(CronError::Fields(fields.len())),
        };
        let cron = Self {
            text: fields.join(" "),
            seconds: Field::parse(&field::SECOND, seconds)?,
            minutes: Field::parse(&field::MINUTE, minutes)?,
            hours: Field::parse(&field::HOUR, hours)?,
            days: Field::parse(&field::DAY, days)?,
            months: Field::parse(&field::MONTH, months)?,
            weekdays: Field::parse(&field::WEEKDAY, weekdays)?,
        };
        if cron.next_after(Timestamp::from_micros(0)).is_none() {
            return Err(CronError::Never);
        }
        Ok(cron)
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests;
