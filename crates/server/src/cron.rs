//! When something is due, in the words of cron.

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

/// Five fields, or six with seconds first, of Coordinated Universal Time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cron {
    text: String,
    seconds: Field,
    minutes: Field,
    hours: Field,
    days: Field,
    months: Field,
    weekdays: Field,
}

/// Why a text says no time.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum CronError {
    /// It has too few fields, or too many.
    #[error("expected 5 or 6 fields (seconds first), got {0}")]
    Fields(usize),
    /// A field says something that it cannot.
    #[error("the {name} must be {expected}, got {text:?}")]
    Field {
        /// Which one.
        name: &'static str,
        /// What it can say.
        expected: String,
        /// What it says.
        text: String,
    },
    /// Such a day is in no calendar.
    #[error("such a day never comes")]
    Never,
}

/// The 29th of February is at most 8 years after the one before.
const LONGEST_WAIT_DAYS: usize = 8 * 366;

/// More is no schedule.
const MAX_BYTES: usize = 256;

// === impl Cron ===

impl Cron {
    /// `0 0 * * *`: at every midnight.
    pub(crate) fn daily() -> Self {
        Self::at_midnight("0 0 * * *", Field::any(&field::DAY))
    }

    /// `0 0 1 * *`: at the midnight with which a month begins.
    pub(crate) fn monthly() -> Self {
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

    /// The first time after `time` at which it is due.
    pub(crate) fn next_after(&self, time: Timestamp) -> Option<Timestamp> {
        let micros = i64::try_from(time.as_micros()).ok()?;
        let instant = jiff::Timestamp::from_microsecond(micros).ok()?;
        let from = instant.to_zoned(TimeZone::UTC).datetime();
        // The next whole second.
        let from = from.with().subsec_nanosecond(0).build().ok()?.checked_add(1.second()).ok()?;
        let due = self.next_from(from)?;
        let instant = due.to_zoned(TimeZone::UTC).ok()?.timestamp();
        Some(Timestamp::from_micros(u64::try_from(instant.as_microsecond()).ok()?))
    }

    fn next_from(&self, from: DateTime) -> Option<DateTime> {
        let mut date = from.date();
        let mut not_before = from.time();
        for _ in 0..LONGEST_WAIT_DAYS {
            if self.has_day(date)
                && let Some(time) = self.time_from(not_before)
            {
                return Some(date.to_datetime(time));
            }
            date = date.tomorrow().ok()?;
            not_before = Time::midnight();
        }
        None
    }

    /// As cron has it: a day fits if either of its two fields names it, if both name some.
    fn has_day(&self, date: Date) -> bool {
        let weekday = date.weekday().to_sunday_zero_offset();
        let by_day = self.days.has(date.day());
        // 7 is Sunday as well.
        let by_weekday = self.weekdays.has(weekday) || (weekday == 0 && self.weekdays.has(7));
        let fits = match (self.days.is_any(), self.weekdays.is_any()) {
            (false, false) => by_day || by_weekday,
            _ => by_day && by_weekday,
        };
        fits && self.months.has(date.month())
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
            seconds: Field::read(&field::SECOND, seconds)?,
            minutes: Field::read(&field::MINUTE, minutes)?,
            hours: Field::read(&field::HOUR, hours)?,
            days: Field::read(&field::DAY, days)?,
            months: Field::read(&field::MONTH, months)?,
            weekdays: Field::read(&field::WEEKDAY, weekdays)?,
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
