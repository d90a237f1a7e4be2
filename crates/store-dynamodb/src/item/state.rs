//! State of an algorithm as attributes.
//!
//! | algorithm | attributes, all N but `log` and `places` |
//! |---|---|
//! | token and leaky bucket | `full_at`, `fraction`, `rate` |
//! | fixed and calendar window | `end`, `count` |
//! | sliding window counter | `start`, `previous`, `current` |
//! | sliding window | `log`: 8 bytes of time and 4 of units for each entry, big-endian, oldest first |
//! | concurrency | `places`: the id, the number of places and the end of each lease, 8 bytes each, in order of their ends |
//!
//! Every state also has `at`, the time of the last change, and `leases` while reservations are
//! pending: id, units, start and end of each, 8 bytes each; `used` has the used units (8 bytes) and
//! the refilled grains (16 bytes) of each, if any is not 0. `settled` has the id, the cost, the
//! returned and the owed units and the end of each settled reservation, 8 bytes each. `grants` has
//! the units and the end of each grant, 8 bytes each. Times are microseconds since 1970.

use aws_sdk_dynamodb::{primitives::Blob, types::AttributeValue};
use headgate::{
    Account, Cost, Grant, Lease, LeaseId, Settled, State, Timestamp,
    algorithm::{
        bucket,
        concurrency::{self, Holder},
        fixed_window, sliding_window, sliding_window_counter,
    },
};

use super::{Attributes, MAX_SECONDS, number, read_number};

const AT: &str = "at";
const LOG: &str = "log";
const PLACES: &str = "places";
const LEASES: &str = "leases";
const USED: &str = "used";
const SETTLED: &str = "settled";
const GRANTS: &str = "grants";

const ENTRY_BYTES: usize = 12;
const HOLDER_BYTES: usize = 24;
const LEASE_BYTES: usize = 32;
const USED_BYTES: usize = 24;
const SETTLED_BYTES: usize = 40;
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
        State::Places(places) => {
            let holder = |Holder { id, places, end }| [id.get(), u64::from(places), end];
            put(PLACES, words(places.holders().flat_map(holder)));
        }
    }
    if !account.leases.is_empty() {
        let lease = |lease: &Lease| {
            let Lease { id, units, taken_at, expires_at, .. } = lease;
            [id.get(), *units, taken_at.as_micros(), expires_at.as_micros()]
        };
        put(LEASES, words(account.leases.iter().flat_map(lease)));
    }
    if account.leases.iter().any(|lease| lease.used > 0 || lease.refilled > 0) {
        let used = |lease: &Lease| {
            [lease.used, (lease.refilled >> u64::BITS) as u64, lease.refilled as u64]
        };
        put(USED, words(account.leases.iter().flat_map(used)));
    }
    if !account.settled.is_empty() {
        let settled = |settled: &Settled| {
            let Settled { id, spent, returned, owed, until } = settled;
            [id.get(), *spent, *returned, *owed, until.as_micros()]
        };
        put(SETTLED, words(account.settled.iter().flat_map(settled)));
    }
    if !account.grants.is_empty() {
        let grant = |grant: &Grant| [grant.units, grant.until.as_micros()];
        put(GRANTS, words(account.grants.iter().flat_map(grant)));
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
    } else if attributes.contains_key(PLACES) {
        State::Places(Box::new(read_places(attributes)?))
    } else {
        State::Log(read_log(attributes, at)?)
    };
    let (leases, settled) = (read_leases(attributes)?, read_settled(attributes)?);
    let grants = read_grants(attributes)?;
    Some((Account { state, leases, settled, grants }, at))
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

fn read_places(attributes: &Attributes) -> Option<concurrency::State> {
    let holders = read_words::<HOLDER_BYTES, 3>(attributes, PLACES)?;
    let holder = |[id, places, end]: &[u64; 3]| {
        let places = u32::try_from(*places).ok().filter(|places| *places > 0)?;
        Some(Holder { id: LeaseId::from(*id), places, end: time(*end)?.as_micros() })
    };
    let holders: Vec<Holder> = holders.iter().map(holder).collect::<Option<_>>()?;
    let state: concurrency::State = holders.iter().copied().collect();
    some_if(state.holders().eq(holders), state)
}

fn read_leases(attributes: &Attributes) -> Option<Vec<Lease>> {
    let leases = read_words::<LEASE_BYTES, 4>(attributes, LEASES)?;
    let used = if attributes.contains_key(USED) {
        read_words::<USED_BYTES, 3>(attributes, USED)?
    } else {
        vec![[0; 3]; leases.len()]
    };
    let is_valid = leases.len() <= Lease::MAX_PENDING && used.len() == leases.len();
    let lease = |([id, units, taken_at, expires_at], [used, high, low]): (&[u64; 4], &[u64; 3])| {
        Some(Lease {
            id: LeaseId::from(*id),
            units: read_units(*units)?,
            used: read_units(*used)?,
            taken_at: time(*taken_at)?,
            expires_at: time(*expires_at)?,
            refilled: u128::from(*high) << u64::BITS | u128::from(*low),
        })
    };
    some_if(is_valid, leases.iter().zip(&used).map(lease).collect::<Option<_>>()?)
}

fn read_settled(attributes: &Attributes) -> Option<Vec<Settled>> {
    let settled = read_words::<SETTLED_BYTES, 5>(attributes, SETTLED)?;
    let one = |[id, spent, returned, owed, until]: &[u64; 5]| {
        let (spent, returned) = (read_units(*spent)?, read_units(*returned)?);
        let owed = some_if(*owed <= spent, *owed)?;
        Some(Settled { id: LeaseId::from(*id), spent, returned, owed, until: time(*until)? })
    };
    let is_valid = settled.len() <= Settled::MAX_REMEMBERED;
    some_if(is_valid, settled.iter().map(one).collect::<Option<_>>()?)
}

/// Records of `N` words, that is `BYTES` bytes; none if there is no such attribute.
fn read_words<const BYTES: usize, const N: usize>(
    attributes: &Attributes,
    name: &str,
) -> Option<Vec<[u64; N]>> {
    if !attributes.contains_key(name) {
        return Some(Vec::new());
    }
    let (records, rest) = read_binary(attributes, name)?.as_chunks::<BYTES>();
    let record = |bytes: &[u8; BYTES]| {
        let (words, _) = bytes.as_chunks::<8>();
        <[[u8; 8]; N]>::try_from(words).ok().map(|words| words.map(u64::from_be_bytes))
    };
    rest.is_empty().then(|| records.iter().map(record).collect::<Option<_>>())?
}

const fn read_units(units: u64) -> Option<u64> {
    if units <= Cost::MAX { Some(units) } else { None }
}

fn read_grants(attributes: &Attributes) -> Option<Vec<Grant>> {
    let grants = read_words::<GRANT_BYTES, 2>(attributes, GRANTS)?;
    let grant = |[units, until]: &[u64; 2]| {
        Some(Grant { units: Cost::new(*units).ok()?.get(), until: time(*until)? })
    };
    let grants: Vec<Grant> = grants.iter().map(grant).collect::<Option<_>>()?;
    let is_sorted = grants.is_sorted_by(|a, b| a.until < b.until);
    some_if(is_sorted && grants.len() <= Grant::MAX_ENDS, grants)
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

fn words(words: impl Iterator<Item = u64>) -> AttributeValue {
    binary(words.flat_map(u64::to_be_bytes))
}

fn binary(bytes: impl Iterator<Item = u8>) -> AttributeValue {
    AttributeValue::B(Blob::new(bytes.collect::<Vec<_>>()))
}

fn some_if<T>(condition: bool, value: T) -> Option<T> {
    condition.then_some(value)
}
