//! The binary form of a reservation's description.

use std::time::Duration;

use headgate::{Algorithm, FailMode, Key, Lease, Limit, Timestamp, limit::Parameters};
use uuid::Uuid;

use super::{ReservationId, ReservedLimit, compiled};
use crate::{Attributes, RuleId, Scope};

/// Of this form. Another one gets another number.
const VERSION: u8 = 1;

/// The prefix of a key is spelt out.
const SPELT_OUT: u8 = u8::MAX;

type Description = ([u8; 16], Duration, u8, Vec<ReservedLimit>);

pub(super) fn encode(
    nonce: &[u8; 16],
    ttl: Duration,
    checks: u8,
    limits: &[ReservedLimit],
) -> Vec<u8> {
    let mut out = vec![VERSION];
    out.extend_from_slice(nonce);
    put_number(&mut out, ttl.as_secs());
    out.push(checks);
    for limit in limits {
        put_limit(&mut out, limit);
    }
    out
}

fn put_limit(out: &mut Vec<u8>, reserved: &ReservedLimit) {
    put_number(out, reserved.checks.into());
    match reserved.rule {
        None => out.push(0),
        Some((id, changed)) => {
            out.push(1);
            out.extend_from_slice(id.as_uuid().as_bytes());
            put_number(out, changed.as_micros());
        }
    }
    out.push(place(&FailMode::ALL, &reserved.fail_mode));
    let scope = Scope::ALL.iter().position(|scope| scope.key_prefix() == &*reserved.prefix);
    if let Some(scope) = scope {
        out.push(scope as u8);
    } else {
        out.push(SPELT_OUT);
        put_text(out, &reserved.prefix);
    }
    put_text(out, &reserved.subject);
    out.push(place(&Algorithm::ALL, &reserved.limit.algorithm()));
    put_number(out, reserved.window_seconds.into());
    match reserved.limit.parameters() {
        Parameters::TokenBucket(bucket) | Parameters::LeakyBucket(bucket) => {
            put_number(out, bucket.rate().into());
            put_number(out, bucket.burst().into());
        }
        _ => put_number(out, reserved.limit.capacity()),
    }
}

/// Reads a description; `None` if it is not one.
pub(super) fn decode(body: &[u8]) -> Option<Description> {
    let mut input = Reader(body);
    if input.byte()? != VERSION {
        return None;
    }
    let nonce = input.array()?;
    let ttl = Duration::from_secs(input.number()?);
    let checks = input.byte()?;
    let bounds = Lease::MIN_DURATION..=Lease::MAX_DURATION;
    if !bounds.contains(&ttl) || usize::from(checks) > ReservationId::MAX_CHECKS {
        return None;
    }
    let mut limits = Vec::new();
    while !input.0.is_empty() {
        if limits.len() == ReservationId::MAX_LIMITS {
            return None;
        }
        limits.push(input.limit()?);
    }
    Some((nonce, ttl, checks, limits))
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn limit(&mut self) -> Option<ReservedLimit> {
        let checks = u16::try_from(self.number()?).ok()?;
        let rule = match self.byte()? {
            0 => None,
            1 => {
                let id = RuleId::from(Uuid::from_bytes(self.array()?));
                Some((id, Timestamp::from_micros(self.number()?)))
            }
            _ => return None,
        };
        let fail_mode = *FailMode::ALL.get(usize::from(self.byte()?))?;
        let prefix = match self.byte()? {
            SPELT_OUT => {
                self.text().filter(|it| rule.is_some_and(|(id, _)| is_prefix_of(id, it)))?
            }
            scope => Scope::ALL.get(usize::from(scope))?.key_prefix(),
        };
        let subject = Key::new(self.text()?).ok()?.subject();
        let algorithm = *Algorithm::ALL.get(usize::from(self.byte()?))?;
        let window_seconds = u32::try_from(self.number()?).ok()?;
        let window = Duration::from_secs(window_seconds.into());
        let mut limit = Limit::new(algorithm, self.number()?, window).ok()?;
        if matches!(algorithm, Algorithm::TokenBucket | Algorithm::LeakyBucket) {
            limit = limit.with_burst(self.number()?).ok()?;
        }
        Some(ReservedLimit {
            checks,
            rule,
            fail_mode,
            prefix: prefix.into(),
            subject: subject.into(),
            suffix: compiled::key_suffix(window_seconds, algorithm).into(),
            window_seconds,
            limit,
        })
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    fn array(&mut self) -> Option<[u8; 16]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    /// Seven bits in each byte, the lowest first.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        str::from_utf8(text).ok()
    }
}

fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_number(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Returns `true` if keys of a rule over attributes may begin so. An id that was made up must not
/// reach the keys of anything else.
fn is_prefix_of(rule: RuleId, prefix: &str) -> bool {
    let rest = prefix.strip_prefix(Scope::Attributes.key_prefix());
    let rest = rest.and_then(|rest| rest.strip_prefix(&rule.to_string()));
    let per = rest.and_then(|rest| rest.strip_prefix(':')?.strip_suffix(':'));
    per.is_some_and(|per| per.is_empty() || per.split(',').all(Attributes::is_name))
}

/// Index of a value in the list of all.
fn place<T: PartialEq>(all: &[T], value: &T) -> u8 {
    let place = all.iter().position(|it| it == value).unwrap_or_default();
    u8::try_from(place).unwrap_or_default()
}
