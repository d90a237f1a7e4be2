//! Decoding of the reply of a script.

use headgate::{
    Account, Check, Cost, Grant, Lease, LeaseId, Limit, Outcome, Outcomes, Settled, Standing,
    State, Timestamp, Verb,
    algorithm::{
        Bucket, bucket, fixed_window,
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
    /// Its lease existed before.
    existed: bool,
    now: Timestamp,
    pending: Pending,
    /// Units granted by this call.
    grant: Option<Grant>,
    numbers: &'v [Value],
}

/// What undoing an acquisition or a reservation needs to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acquired {
    pub(crate) at: Timestamp,
    /// Nothing was taken, because the lease existed before: an earlier request with the same id has
    /// it.
    pub(crate) existed: bool,
    /// The bucket afterwards. If it has not changed since, all units return.
    pub(crate) bucket: Option<bucket::State>,
}

/// Reservations and grants of a key.
#[derive(Default)]
struct Pending {
    leases: Vec<Lease>,
    settled: Vec<Settled>,
    grants: Vec<Grant>,
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
            let part = KeyReply::read(verb, check, part)?;
            Ok(outcome(verb, check, &part)?.with_grant(part.grant))
        })
        .collect()
}

/// What `checks` acquired or reserved, by the same reply as `outcomes`.
pub(crate) fn acquired(
    verb: Verb,
    checks: &[Check<'_>],
    outcomes: &Outcomes,
    reply: &Value,
) -> Result<Vec<Acquired>, MalformedReply> {
    let acquired = |(i, (check, outcome)): (usize, (&Check<'_>, &Outcome))| {
        let bucket = match check.limit().parameters() {
            Parameters::TokenBucket(bucket) | Parameters::LeakyBucket(bucket) => Some(bucket),
            _ => None,
        };
        let (existed, state) = match reply {
            Value::BulkString(packed) => {
                let state = bucket.map(|bucket| fast_path_bucket(bucket, i, checks.len(), packed));
                (false, state)
            }
            Value::Array(parts) => {
                let part = parts.get(i).ok_or(MalformedReply)?;
                let part = KeyReply::read(verb, check, part)?;
                (part.existed, bucket.map(|bucket| part.bucket(bucket)))
            }
            _ => return Err(MalformedReply),
        };
        let bucket = match state.transpose()? {
            Some(State::Bucket(state)) => Some(state),
            _ => None,
        };
        Ok(Acquired { at: outcome.at, existed, bucket })
    };
    checks.iter().zip(outcomes).enumerate().map(acquired).collect()
}

/// The i-th of `count` states in the reply of `fast_path.lua`, which is a bucket.
fn fast_path_bucket(
    bucket: &Bucket,
    i: usize,
    count: usize,
    packed: &[u8],
) -> Result<State, MalformedReply> {
    let (numbers, _) = packed.as_chunks::<8>();
    let number = |i: usize| numbers.get(i).copied().map(whole).ok_or(MalformedReply);
    let since = Timestamp::from_micros(number(1 + count + i)?.unsigned_abs());
    bucket_state(bucket, number(1 + i)?, 0, bucket.rate(), since)
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
        Parameters::SlidingWindow(_) | Parameters::Concurrency(_) => return Err(MalformedReply),
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
        Parameters::SlidingWindow(_) if part.is_abridged()? => {
            let account = part.account(part.abridged_log(limit, cost)?);
            let (now, allowed) = (part.now, part.allowed);
            return Ok(account.outcome_without_expiries(limit, verb, cost, now, allowed));
        }
        Parameters::SlidingWindow(_) => part.log()?,
        Parameters::Concurrency(_) => return part.places(verb, limit),
    };
    Ok(part.account(state).outcome(limit, verb, cost, part.now, part.allowed))
}

impl<'v> KeyReply<'v> {
    fn read(verb: Verb, check: &Check<'_>, value: &'v Value) -> Result<Self, MalformedReply> {
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
        let pending = Pending::read(pending, check.limit()).ok_or(MalformedReply)?;
        let now = Timestamp::from_micros(number(now)?);
        let (allowed, existed) = (*allowed > 0, *allowed == 2);
        Ok(Self { allowed, existed, now, pending, grant, numbers })
    }

    fn account(&self, state: State) -> Account {
        let Pending { leases, settled, grants } = &self.pending;
        let (leases, settled, grants) = (leases.clone(), settled.clone(), grants.clone());
        Account { state, leases, settled, grants }
    }

    /// Returns `true` if the reply has no entries of the log: none is needed without reservations,
    /// and there may be too many.
    fn is_abridged(&self) -> Result<bool, MalformedReply> {
        let has_entries = self.numbers.len() > 3 || self.number(0)? == 0;
        Ok(self.pending.leases.is_empty() || !has_entries)
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

    /// places taken, end of the last lease, end of the lease that makes room, places and end of the
    /// verb's own lease
    fn places(&self, verb: Verb, limit: &Limit) -> Result<Outcome, MalformedReply> {
        let until = |i| {
            let left = self.number(i)?.saturating_sub(self.now.as_micros());
            Ok(Duration::from_micros(left))
        };
        let (capacity, remaining) =
            (limit.capacity(), limit.capacity().saturating_sub(self.number(0)?));
        let outcome = if self.allowed {
            Outcome::admission(capacity, remaining, until(1)?, self.now)
        } else {
            Outcome::denial(capacity, remaining, until(1)?, until(2)?, self.now)
        };
        let standing = match self.number(3)? {
            0 => Standing::Ended,
            held => Standing::Pending { held, expires_at: Timestamp::from_micros(self.number(4)?) },
        };
        Ok(outcome.with_reservation(verb.reservation().map(|_| standing)))
    }

    /// A log that makes room for `cost` at the same time: the first three numbers are enough.
    fn abridged_log(&self, limit: &Limit, cost: Cost) -> Result<State, MalformedReply> {
        let (total, newest, room_at) = (self.number(0)?, self.number(1)?, self.number(2)?);
        let granted: u64 = self.pending.grants.iter().map(|grant| grant.units).sum();
        let in_the_way = (total + granted + cost.get()).saturating_sub(limit.capacity());
        let leaving = (room_at > 0).then_some((in_the_way, room_at));
        Ok(State::Log(sliding_window::State::abridged(total, newest, leaving)))
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

impl Pending {
    /// Parses what `prelude.lua` writes, of a key with this `limit`.
    fn read(text: &[u8], limit: &Limit) -> Option<Self> {
        let mut pending = Self::default();
        for item in str::from_utf8(text).ok()?.split_terminator(';') {
            if let Some(grant) = item.strip_prefix('+') {
                pending.grants.push(read_grant(grant)?);
            } else if let Some(settled) = item.strip_prefix('!') {
                pending.settled.push(read_settled(settled)?);
            } else {
                pending.leases.push(read_lease(item, limit)?);
            }
        }
        Some(pending)
    }
}

fn read_grant(text: &str) -> Option<Grant> {
    let (units, until) = text.split_once(':')?;
    Some(Grant { units: units.parse().ok()?, until: Timestamp::from_micros(until.parse().ok()?) })
}

/// `id/spent/returned/owed/until`
fn read_settled(text: &str) -> Option<Settled> {
    let mut fields = text.split('/');
    let id = u64::from_str_radix(fields.next()?, 16).ok()?;
    let mut number = || fields.next()?.parse().ok();
    Some(Settled {
        id: LeaseId::from(id),
        spent: number()?,
        returned: number()?,
        owed: number()?,
        until: Timestamp::from_micros(number()?),
    })
}

/// `id:units:taken:expires`, then `:used:refilled:part` unless these are 0
fn read_lease(text: &str, limit: &Limit) -> Option<Lease> {
    let mut fields = text.split(':');
    let id = u64::from_str_radix(fields.next()?, 16).ok()?;
    let mut number = || fields.next().map(|field| field.parse::<u64>().ok());
    let (units, taken_at, expires_at) = (number()??, number()??, number()??);
    let used = number().unwrap_or(Some(0))?;
    let (refilled, part) = (number().unwrap_or(Some(0))?, number().unwrap_or(Some(0))?);
    // A token of a bucket has as many grains as the window has microseconds.
    let grains = limit.window().map_or(0, |window| window.as_micros());
    Some(Lease {
        id: LeaseId::from(id),
        units,
        used,
        taken_at: Timestamp::from_micros(taken_at),
        expires_at: Timestamp::from_micros(expires_at),
        refilled: u128::from(refilled) * grains + u128::from(part),
    })
}

#[cfg(test)]
mod tests {
    use headgate::{Cost, Key};

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
