//! Decoding of the reply of a script.

use headgate::{
    Account, Check, Cost, Grant, Lease, LeaseId, Limit, Outcome, Outcomes, State, Timestamp, Verb,
    algorithm::{
        Bucket, SlidingWindow, bucket, fixed_window,
        sliding_window::{self, Entry},
        sliding_window_counter,
    },
    limit::Parameters,
};
use redis::Value;
use std::time::Duration;
use thiserror::Error;

/// A reply that the scripts never send.
#[derive(Clone, Copy, Debug, Error)]
#[error("malformed reply of the script")]
pub(crate) struct MalformedReply;

/// The reply for one key, as `slow_path.lua` writes it.
struct KeyReply<'v> {
    allowed: bool,
    now: Timestamp,
    leases: Vec<Lease>,
    grants: Vec<Grant>,
    /// Units granted by this call.
    grant: Option<Grant>,
    numbers: &'v [Value],
}

/// Decodes the reply to `verb` and `checks`.
pub(crate) fn outcomes(
    verb: Verb,
    checks: &[Check<'_>],
    reply: &Value,
) -> Result<Outcomes, MalformedReply> {
    let parts = match reply {
        Value::BulkString(numbers) => return fast_path_outcomes(checks, numbers),
        Value::Array(parts) if parts.len() == checks.len() => parts,
        _ => return Err(MalformedReply),
    };
    checks
        .iter()
        .zip(parts)
        .map(|(check, part)| {
            let part = KeyReply::read(verb, part)?;
            Ok(outcome(verb, check, &part)?.with_grant(part.grant))
        })
        .collect()
}

/// Decodes the reply of `fast_path.lua`: the time, then the first number of each check, the second
/// of each and, if there are counters, the third of each. Nothing is pending then.
fn fast_path_outcomes(checks: &[Check<'_>], packed: &[u8]) -> Result<Outcomes, MalformedReply> {
    let ([now, numbers @ ..], []) = packed.as_chunks::<8>() else {
        return Err(MalformedReply);
    };
    let now = Timestamp::from_micros(unsigned(whole(*now))?);
    let (firsts, numbers) = numbers.split_at_checked(checks.len()).ok_or(MalformedReply)?;
    let (seconds, thirds) = numbers.split_at_checked(checks.len()).ok_or(MalformedReply)?;
    if !thirds.is_empty() && thirds.len() != checks.len() {
        return Err(MalformedReply);
    }
    let outcome = |(i, check): (usize, &Check<'_>)| {
        let third = thirds.get(i).copied().map(whole);
        fast_path_outcome(check, now, whole(firsts[i]), whole(seconds[i]), third)
    };
    checks.iter().enumerate().map(outcome).collect()
}

/// Numbers in Lua are doubles; these are whole.
#[expect(clippy::cast_possible_truncation, reason = "whole, and at most 2^53")]
fn whole(bytes: [u8; 8]) -> i64 {
    f64::from_le_bytes(bytes) as i64
}

fn fast_path_outcome(
    check: &Check<'_>,
    now: Timestamp,
    first: i64,
    second: i64,
    third: Option<i64>,
) -> Result<Outcome, MalformedReply> {
    let (limit, cost) = (check.limit(), check.cost());
    // A time, negated if the check is denied.
    let (time, allowed) = (second.unsigned_abs(), second > 0);
    let state = match limit.parameters() {
        Parameters::TokenBucket(bucket) | Parameters::LeakyBucket(bucket) => {
            bucket_state(bucket, first, 0, bucket.rate(), Timestamp::from_micros(time))?
        }
        Parameters::FixedWindow(_) | Parameters::Calendar(_) => {
            State::Window(fixed_window::State { count: unsigned(first)?, end: time })
        }
        Parameters::SlidingWindowCounter(_) => State::Counter(sliding_window_counter::State {
            start: time,
            previous: unsigned(first)?,
            current: unsigned(third.ok_or(MalformedReply)?)?,
        }),
        Parameters::SlidingWindow(_) => return Err(MalformedReply),
    };
    Ok(limit.outcome(&state, cost, now, allowed))
}

fn unsigned<T: TryFrom<i64>>(number: i64) -> Result<T, MalformedReply> {
    T::try_from(number).map_err(|_| MalformedReply)
}

/// The time in Redis, if it is in none of the calendar periods that were sent.
pub(crate) fn needs_other_periods(reply: &Value) -> Option<Timestamp> {
    number(reply).ok().map(Timestamp::from_micros)
}

fn outcome(verb: Verb, check: &Check<'_>, part: &KeyReply<'_>) -> Result<Outcome, MalformedReply> {
    let (limit, cost) = (check.limit(), check.cost());
    let state = match limit.parameters() {
        Parameters::TokenBucket(bucket) | Parameters::LeakyBucket(bucket) => part.bucket(bucket)?,
        Parameters::FixedWindow(_) | Parameters::Calendar(_) => part.window()?,
        Parameters::SlidingWindowCounter(_) => part.counter()?,
        Parameters::SlidingWindow(log) if part.is_log_summary() => {
            return part.log_summary(limit, *log);
        }
        Parameters::SlidingWindow(_) => part.log()?,
    };
    let (leases, grants) = (part.leases.clone(), part.grants.clone());
    let account = Account { state, leases, grants };
    Ok(account.outcome(limit, verb, cost, part.now, part.allowed))
}

impl<'v> KeyReply<'v> {
    fn read(verb: Verb, value: &'v Value) -> Result<Self, MalformedReply> {
        let Value::Array(values) = value else {
            return Err(MalformedReply);
        };
        let [Value::Int(allowed), now, Value::BulkString(pending), numbers @ ..] = &values[..]
        else {
            return Err(MalformedReply);
        };
        let (grant, numbers) = match (verb, numbers) {
            (Verb::Lease, [units, until, numbers @ ..]) => {
                let until = Timestamp::from_micros(number(until)?);
                (Some(Grant { units: number(units)?, until }), numbers)
            }
            (Verb::Lease, _) => return Err(MalformedReply),
            _ => (None, numbers),
        };
        let grant = grant.filter(|grant| grant.units > 0);
        let (leases, grants) = read_pending(pending)?;
        let now = Timestamp::from_micros(number(now)?);
        Ok(Self { allowed: *allowed == 1, now, leases, grants, grant, numbers })
    }

    /// Returns `true` if the reply has no entries of the log, which may be long.
    fn is_log_summary(&self) -> bool {
        self.leases.is_empty() && (self.allowed || self.grants.is_empty())
    }

    fn number(&self, i: usize) -> Result<u64, MalformedReply> {
        self.numbers.get(i).ok_or(MalformedReply).and_then(number)
    }

    fn small(&self, i: usize) -> Result<u32, MalformedReply> {
        self.numbers.get(i).ok_or(MalformedReply).and_then(small)
    }

    /// tokens (may be negative), fraction, rate, time of the last refill
    fn bucket(&self, bucket: &Bucket) -> Result<State, MalformedReply> {
        let Some(Value::Int(tokens)) = self.numbers.first() else {
            return Err(MalformedReply);
        };
        let since = Timestamp::from_micros(self.number(3)?);
        bucket_state(bucket, *tokens, self.number(1)?, self.small(2)?, since)
    }

    /// count, end
    fn window(&self) -> Result<State, MalformedReply> {
        let (count, end) = (self.number(0)?, self.number(1)?);
        Ok(State::Window(fixed_window::State { end, count }))
    }

    /// start, previous, current
    fn counter(&self) -> Result<State, MalformedReply> {
        let (start, previous, current) = (self.number(0)?, self.small(1)?, self.small(2)?);
        Ok(State::Counter(sliding_window_counter::State { start, previous, current }))
    }

    /// total, time of the newest entry, time of the entry that makes room when it expires, and each
    /// entry: time, units
    fn log(&self) -> Result<State, MalformedReply> {
        let (pairs, _) = self.numbers.get(3..).ok_or(MalformedReply)?.as_chunks::<2>();
        let entry = |[at, count]: &[Value; 2]| {
            let count = u32::try_from(number(count)?).map_err(|_| MalformedReply)?;
            Ok(Entry { at: number(at)?, count })
        };
        let log: sliding_window::State = pairs.iter().map(entry).collect::<Result<_, _>>()?;
        Ok(State::Log(log))
    }

    /// The first three numbers are enough.
    fn log_summary(&self, limit: &Limit, log: SlidingWindow) -> Result<Outcome, MalformedReply> {
        let leaves = |at: u64| match at {
            0 => Duration::ZERO,
            at => Duration::from_micros((at + log.window()).saturating_sub(self.now.as_micros())),
        };
        let granted: u64 = self.grants.iter().map(|grant| grant.units).sum();
        let remaining = limit.capacity().saturating_sub(self.number(0)? + granted);
        // Granted units are recorded in the last microsecond of their grant.
        let last_grant = self.grants.last().map(|grant| grant.until.as_micros() - 1);
        let reset_after = leaves(last_grant.unwrap_or(self.number(1)?));
        if self.allowed {
            return Ok(Outcome::admission(limit.capacity(), remaining, reset_after, self.now));
        }
        let retry_after = leaves(self.number(2)?);
        Ok(Outcome::denial(limit.capacity(), remaining, reset_after, retry_after, self.now))
    }
}

fn number(value: &Value) -> Result<u64, MalformedReply> {
    match value {
        Value::Int(number) => u64::try_from(*number).map_err(|_| MalformedReply),
        _ => Err(MalformedReply),
    }
}

fn small(value: &Value) -> Result<u32, MalformedReply> {
    u32::try_from(number(value)?).map_err(|_| MalformedReply)
}

/// A bucket with `tokens` and a fraction of another.
fn bucket_state(
    bucket: &Bucket,
    tokens: i64,
    part: u64,
    rate: u32,
    since: Timestamp,
) -> Result<State, MalformedReply> {
    let missing = i64::from(bucket.burst()).checked_sub(tokens).ok_or(MalformedReply)?;
    let missing = u64::try_from(missing).map_err(|_| MalformedReply)?;
    let grains = u128::from(missing) * u128::from(bucket.window());
    let debt = grains.checked_sub(part.into()).ok_or(MalformedReply)?;
    Ok(State::Bucket(bucket::State::owing(debt, rate, since)))
}

/// Parses `id:cost:taken:expires` of leases and `+units:until` of grants, separated by semicolons.
fn read_pending(text: &[u8]) -> Result<(Vec<Lease>, Vec<Grant>), MalformedReply> {
    let (mut leases, mut grants) = (Vec::new(), Vec::new());
    let text = str::from_utf8(text).map_err(|_| MalformedReply)?;
    for item in text.split_terminator(';') {
        match item.strip_prefix('+') {
            Some(grant) => grants.push(read_grant(grant).ok_or(MalformedReply)?),
            None => leases.push(read_lease(item).ok_or(MalformedReply)?),
        }
    }
    Ok((leases, grants))
}

fn read_grant(text: &str) -> Option<Grant> {
    let (units, until) = text.split_once(':')?;
    Some(Grant { units: units.parse().ok()?, until: Timestamp::from_micros(until.parse().ok()?) })
}

fn read_lease(text: &str) -> Option<Lease> {
    let mut words = text.split(':');
    let id = u64::from_str_radix(words.next()?, 16).ok()?;
    let mut number = || words.next()?.parse::<u64>().ok();
    Some(Lease {
        id: LeaseId::from(id),
        cost: Cost::new(number()?).ok()?,
        taken_at: Timestamp::from_micros(number()?),
        expires_at: Timestamp::from_micros(number()?),
    })
}

#[cfg(test)]
mod tests {
    use headgate::Key;

    use super::*;

    fn reply(numbers: &[f64]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    fn check(limit: &Limit) -> Check<'_> {
        Check::new(Key::new("key").unwrap(), limit, Cost::ONE).unwrap()
    }

    #[test]
    fn a_reply_with_too_few_or_too_many_numbers_is_malformed() {
        let minute = Duration::from_secs(60);
        let bucket = Limit::token_bucket(10, minute).unwrap();
        let counter = Limit::sliding_window_counter(10, minute).unwrap();
        let (now, tokens, start) = (120e6, 9.0, 60e6);
        let read = |limits: [&Limit; 2], numbers: &[f64]| {
            fast_path_outcomes(&limits.map(check), &reply(numbers))
                .map(|outcomes| outcomes[0].remaining)
        };

        let buckets = [now, tokens, tokens, now, now];
        assert_eq!(read([&bucket, &bucket], &buckets).ok(), Some(9));
        let counters = [now, 0.0, tokens, start, now, 1.0, 0.0];
        assert_eq!(read([&counter, &bucket], &counters).ok(), Some(9));
        assert!(read([&counter, &bucket], &counters[..5]).is_err(), "a counter has three");
        for count in [0, 1, 2, 4, 6] {
            assert!(read([&bucket, &bucket], &counters[..count]).is_err(), "{count} numbers");
        }
        let one_more = [&counters[..], &[0.0]].concat();
        assert!(read([&counter, &bucket], &one_more).is_err());
        let checks = [check(&bucket), check(&bucket)];
        assert!(fast_path_outcomes(&checks, &reply(&buckets)[1..]).is_err(), "a byte is missing");
    }
}
