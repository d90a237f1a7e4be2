use super::CronError;

/// The numbers that a field matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    /// One bit for each number.
    numbers: u64,
    /// True if it begins with `*` or `?`, and does not restrict the day.
    is_any: bool,
}

/// The values that a field accepts.
pub(super) struct Range {
    name: &'static str,
    from: i8,
    to: i8,
    /// Names of the numbers, from `from` on.
    names: &'static [&'static str],
}

pub(super) const SECOND: Range = Range { name: "second", from: 0, to: 59, names: &[] };
pub(super) const MINUTE: Range = Range { name: "minute", from: 0, to: 59, names: &[] };
pub(super) const HOUR: Range = Range { name: "hour", from: 0, to: 23, names: &[] };
pub(super) const DAY: Range = Range { name: "day of the month", from: 1, to: 31, names: &[] };
pub(super) const MONTH: Range = Range {
    name: "month",
    from: 1,
    to: 12,
    names: &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"],
};
pub(super) const WEEKDAY: Range = Range {
    name: "day of the week",
    from: 0,
    to: 7,
    names: &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
};

// === impl Field ===

impl Field {
    pub(super) fn parse(range: &Range, text: &str) -> Result<Self, CronError> {
        let items = text.split(',').map(|item| range.item(item));
        let numbers = items.reduce(|all, item| Some(all? | item?)).flatten();
        let numbers = numbers.ok_or_else(|| CronError::Field {
            name: range.name,
            expected: format!("{} to {}, *, a list, a range or a step", range.from, range.to),
            text: text.chars().take(64).collect(),
        })?;
        Ok(Self { numbers, is_any: text.starts_with(['*', '?']) })
    }

    /// Matches one number.
    pub(super) const fn only(number: i8) -> Self {
        Self { numbers: 1 << number, is_any: false }
    }

    /// Matches every number.
    pub(super) fn any(range: &Range) -> Self {
        let numbers = (range.from..=range.to).fold(0, |bits, number| bits | 1 << number);
        Self { numbers, is_any: true }
    }

    pub(super) const fn has(self, number: i8) -> bool {
        self.numbers & (1 << number) != 0
    }

    pub(super) const fn is_any(self) -> bool {
        self.is_any
    }

    /// Returns the first matching number from `least` on.
    pub(super) fn first_from(self, least: i8) -> Option<i8> {
        (least..=59).find(|number| self.has(*number))
    }
}

// === impl Range ===

impl Range {
    /// Parses `*`, `5`, `1-5`, `*/2`, `1-5/2` or `3/2`.
    fn item(&self, text: &str) -> Option<u64> {
        let (span, step) = match text.split_once('/') {
            Some((span, step)) => {
                (span, Some(step.parse::<usize>().ok().filter(|step| *step > 0)?))
            }
            None => (text, None),
        };
        let (from, to) = match (span, span.split_once('-')) {
            ("*" | "?", _) => (self.from, self.to),
            (_, Some((from, to))) => (self.number(from)?, self.number(to)?),
            (_, None) => {
                let from = self.number(span)?;
                (from, if step.is_some() { self.to } else { from })
            }
        };
        if from > to {
            return None;
        }
        Some((from..=to).step_by(step.unwrap_or(1)).fold(0, |bits, number| bits | 1 << number))
    }

    fn number(&self, text: &str) -> Option<i8> {
        let named = self.names.iter().position(|name| name.eq_ignore_ascii_case(text));
        let number = match named {
            Some(place) => self.from + place as i8,
            None if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok()?,
            None => return None,
        };
        (self.from..=self.to).contains(&number).then_some(number)
    }
}
