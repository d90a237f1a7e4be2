//! State of an algorithm as attributes.
//!
//! | algorithm | attributes, all N but `log` |
//! |---|---|
//! | token and leaky bucket | `full_at`, `fraction`, `rate` |
//! | fixed and calendar window | `end`, `count` |
//! | sliding window counter | `start`, `previous`, `current` |
//! | sliding window | `log`: 8 bytes of time and 4 of units for each entry, big-endian, oldest first |
//!
//! Every state also has `at`, the time of the last change, and `leases` while reservations are
//! pending: id, cost, start and end of each, 8 bytes each. `grants` has the units and the end of each
//! grant, 8 bytes each. Times are microseconds since 1970.

use aws_sdk_dynamodb::{primitives::Blob, types::AttributeValue};
use headgate::{
    Account, Cost, Grant, Lease, LeaseId, State, Timestamp,
    algorithm::{bucket, fixed_window, sliding_window, sliding_window_counter},
};

use super::{Attributes, MAX_SECONDS, number, read_number};

const AT: &str = "at";
const LOG: &str = "log";
const LEASES: &str = "leases";
const GRANTS: &str = "grants";

const ENTRY_BYTES: usize = 12;
const LEASE_BYTES: usize = 32;
const GRANT_BYTES: usize = 16;

pub(super) fn encode(account: &Account, at: Timestamp) -> Attributes {
    let mut attributes = Attributes::from([(AT.to_owned(), number(at.as_micros()))]);
    let mut put = |name: &str, value| attributes.insert(name.to_owned(), value);
    match &account.state {
        State::Fresh => {}
        State::Bucket(bucket) => {
            put("full_at", number(bucket.full_at));
            put("fraction", number(bucket.fraction.into()));
            put("rate", number(bucket.rate.into()));
        }
        State::Window(window) => {
            put("end", number(window.end));
            put("count", number(window.count));
        }
        State::Counter(counter) => {
            put("start", number(counter.start));
            put("previous", number(counter.previous.into()));
            put("current", number(counter.current.into()));
        }
        State::Log(log) => {
            let entry = |entry: sliding_window::Entry| {
                let mut bytes = [0; ENTRY_BYTES];
                bytes[..8].copy_from_slice(&entry.at.to_be_bytes());
                bytes[8..].copy_from_slice(&entry.count.to_be_bytes());
                bytes
            };
            put(LOG, binary(log.entries().flat_map(entry)));
        }
    }
    if !account.leases.is_empty() {
        let lease = |lease: &Lease| {
            let Lease { id, cost, taken_at, expires_at } = lease;
            [id.get(), cost.get(), taken_at.as_micros(), expires_at.as_micros()]
        };
        put(LEASES, binary(account.leases.iter().flat_map(lease).flat_map(u64::to_be_bytes)));
    }
    if !account.grants.is_empty() {
        let grant = |grant: &Grant| [grant.units, grant.until.as_micros()];
        put(GRANTS, binary(account.grants.iter().flat_map(grant).flat_map(u64::to_be_bytes)));
    }
    attributes
}

/// Decodes only what can have been [encoded](encode): the arithmetic relies on it.
pub(super) fn decode(attributes: &Attributes) -> Option<(Account, Timestamp)> {
    let at = read_time(attributes, AT)?;
    let state = if attributes.contains_key("full_at") {
        State::Bucket(read_bucket(attributes)?)
    } else if attributes.contains_key("end") {
        let (end, count) = (read_time(attributes, "end")?, read_number(attributes, "count")?);
        let end = end.as_micros();
        State::Window(fixed_window::State { end, count: some_if(count <= Cost::MAX, count)? })
    } else if attributes.contains_key("start") {
        State::Counter(sliding_window_counter::State {
            start: read_time(attributes, "start")?.as_micros(),
            previous: read_small(attributes, "previous")?,
            current: read_small(attributes, "current")?,
        })
    } else {
        State::Log(read_log(attributes, at)?)
    };
    let (leases, grants) = (read_leases(attributes)?, read_grants(attributes)?);
    Some((Account { state, leases, grants }, at))
}

fn read_bucket(attributes: &Attributes) -> Option<bucket::State> {
    let full_at = read_time(attributes, "full_at")?.as_micros();
    let (fraction, rate) = (read_small(attributes, "fraction")?, read_small(attributes, "rate")?);
    let state = bucket::State { full_at, fraction, rate };
    some_if(fraction < rate || state == bucket::State::default(), state)
}

fn read_log(attributes: &Attributes, at: Timestamp) -> Option<sliding_window::State> {
    let (entries, rest) = read_binary(attributes, LOG)?.as_chunks::<ENTRY_BYTES>();
    let entries = entries.iter().map(|bytes| {
        let (at, count) = bytes.split_at(8);
        let (at, count) = (at.try_into().ok()?, count.try_into().ok()?);
        Some(sliding_window::Entry { at: u64::from_be_bytes(at), count: u32::from_be_bytes(count) })
    });
    let entries: Vec<_> = entries.collect::<Option<_>>()?;
    let total: u64 = entries.iter().map(|entry| u64::from(entry.count)).sum();
    let is_sorted = entries.is_sorted_by_key(|entry| entry.at)
        && entries.last().is_none_or(|newest| newest.at <= at.as_micros());
    let is_valid = rest.is_empty() && is_sorted && u32::try_from(total).is_ok();
    // Only then: collecting a log adds up its units.
    is_valid.then(|| entries.into_iter().collect())
}

fn read_leases(attributes: &Attributes) -> Option<Vec<Lease>> {
    if !attributes.contains_key(LEASES) {
        return Some(Vec::new());
    }
    let (leases, rest) = read_binary(attributes, LEASES)?.as_chunks::<LEASE_BYTES>();
    let lease = |bytes: &[u8; LEASE_BYTES]| {
        let (words, _) = bytes.as_chunks::<8>();
        let [id, cost, taken_at, expires_at] = *words else { return None };
        let [taken_at, expires_at] = [taken_at, expires_at].map(u64::from_be_bytes);
        Some(Lease {
            id: LeaseId::from(u64::from_be_bytes(id)),
            cost: Cost::new(u64::from_be_bytes(cost)).ok()?,
            taken_at: time(taken_at)?,
            expires_at: time(expires_at)?,
        })
    };
    let is_valid = rest.is_empty() && leases.len() <= Lease::MAX_PENDING;
    some_if(is_valid, leases.iter().map(lease).collect::<Option<_>>()?)
}

fn read_grants(attributes: &Attributes) -> Option<Vec<Grant>> {
    if !attributes.contains_key(GRANTS) {
        return Some(Vec::new());
    }
    let (grants, rest) = read_binary(attributes, GRANTS)?.as_chunks::<GRANT_BYTES>();
    let grant = |bytes: &[u8; GRANT_BYTES]| {
        let (words, _) = bytes.as_chunks::<8>();
        let [units, until] = *words else { return None };
        let [units, until] = [units, until].map(u64::from_be_bytes);
        Some(Grant { units: Cost::new(units).ok()?.get(), until: time(until)? })
    };
    let grants: Vec<Grant> = grants.iter().map(grant).collect::<Option<_>>()?;
    let is_sorted = grants.is_sorted_by(|a, b| a.until < b.until);
    some_if(rest.is_empty() && is_sorted && grants.len() <= Grant::MAX_ENDS, grants)
}

fn read_time(attributes: &Attributes, name: &str) -> Option<Timestamp> {
    time(read_number(attributes, name)?)
}

fn time(micros: u64) -> Option<Timestamp> {
    some_if(micros <= MAX_SECONDS * 1_000_000, Timestamp::from_micros(micros))
}

fn read_small(attributes: &Attributes, name: &str) -> Option<u32> {
    read_number(attributes, name)?.try_into().ok()
}

fn read_binary<'a>(attributes: &'a Attributes, name: &str) -> Option<&'a [u8]> {
    Some(attributes.get(name)?.as_b().ok()?.as_ref())
}

fn binary(bytes: impl Iterator<Item = u8>) -> AttributeValue {
    AttributeValue::B(Blob::new(bytes.collect::<Vec<_>>()))
}

fn some_if<T>(condition: bool, value: T) -> Option<T> {
    condition.then_some(value)
}
