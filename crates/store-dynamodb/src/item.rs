//! Conversion between accounts and items.
//!
//! `expires_at` is the second at which the full limit is available again, rounded up. From then on,
//! DynamoDB may delete the item at any time; until it does, the item is read as if it were deleted.

mod state;

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use headgate::{
    Account, Check, Limit, State, StoreError, Timestamp, Verb, algorithm::bucket, limit::Parameters,
};

use crate::transition::ReadState;

/// Attributes by name.
pub(crate) type Attributes = HashMap<String, AttributeValue>;

pub(crate) const IDENTIFIER: &str = "identifier";
pub(crate) const EXPIRES_AT: &str = "expires_at";
pub(crate) const VERSION: &str = "version";
const STATE: &str = "state";

/// End of the year 9999: later times are invalid.
const MAX_SECONDS: u64 = 253_402_300_799;

/// An item to write.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) account: Account,
    at: Timestamp,
    expires_at: u64,
}

/// State of the item that a write requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// No item.
    Nothing,
    /// The item is unchanged. One that another program wrote has no version.
    Unchanged { version: Option<u64>, expires_at: u64 },
}

// === impl Item ===

impl Item {
    /// The item of an account; `None` if the full limit is available.
    pub(crate) fn new(check: &Check<'_>, account: Account, now: Timestamp) -> Option<Self> {
        // `reset_after` takes the expiry of leases into account. The item must exist until the last
        // lease has expired, so that a commit finds it, also if it is repeated.
        let free_after =
            account.outcome(check.limit(), Verb::Peek, check.cost(), now, true).reset_after;
        let leases = account.leases.iter().map(|lease| lease.expires_at);
        let settled = account.settled.iter().map(|settled| settled.until);
        let until = leases.chain(settled).fold(now + free_after, Ord::max);
        (until > now).then(|| Self { account, at: now, expires_at: until.as_secs_ceil() })
    }

    /// The attributes of a new version of the key `name`.
    pub(crate) fn attributes(&self, name: &str, version: u64) -> Attributes {
        let mut state = state::encode(&self.account, self.at);
        // Shows whether another program has changed `expires_at` since.
        state.insert(EXPIRES_AT.to_owned(), number(self.expires_at));
        HashMap::from([
            (IDENTIFIER.to_owned(), AttributeValue::S(name.to_owned())),
            (EXPIRES_AT.to_owned(), number(self.expires_at)),
            (VERSION.to_owned(), number(version)),
            (STATE.to_owned(), AttributeValue::M(state)),
        ])
    }
}

// === impl ReadState ===

impl ReadState {
    /// A key without an item.
    pub(crate) fn nothing() -> Self {
        let expected = Expected::Nothing;
        Self { account: Account::default(), at: Timestamp::default(), expected }
    }

    /// Decodes the item of a key with this `limit`.
    pub(crate) fn read(
        item: &Attributes,
        limit: &Limit,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let expires_at = read_number(item, EXPIRES_AT).filter(|seconds| *seconds <= MAX_SECONDS);
        let expires_at = expires_at.ok_or_else(|| corrupt("expires_at is not a Unix time"))?;
        let version = match item.get(VERSION) {
            None => None,
            Some(_) => {
                Some(read_number(item, VERSION).ok_or_else(|| corrupt("version is not a number"))?)
            }
        };
        let nothing =
            Self { expected: Expected::Unchanged { version, expires_at }, ..Self::nothing() };
        if Timestamp::from_micros(expires_at * 1_000_000) <= now {
            return Ok(nothing);
        }
        match item.get(STATE) {
            Some(AttributeValue::M(state))
                if read_number(state, EXPIRES_AT) == Some(expires_at) =>
            {
                let (account, at) =
                    state::decode(state).ok_or_else(|| corrupt("state is invalid"))?;
                Ok(Self { account, at, ..nothing })
            }
            None | Some(AttributeValue::M(_)) => {
                let account =
                    taken_until(expires_at, limit).ok_or_else(|| corrupt("state is missing"))?;
                Ok(Self { account, ..nothing })
            }
            Some(_) => Err(corrupt("state is not a map")),
        }
    }
}

/// A cooldown that ends at `expires_at`.
fn taken_until(expires_at: u64, limit: &Limit) -> Option<Account> {
    let (Parameters::TokenBucket(bucket) | Parameters::LeakyBucket(bucket)) = limit.parameters()
    else {
        return None;
    };
    let full_at = expires_at * 1_000_000;
    let state = bucket::State { full_at, fraction: 0, rate: bucket.rate() };
    let account = Account { state: State::Bucket(state), ..Account::default() };
    (bucket.burst() == 1).then_some(account)
}

/// The error omits the key, which identifies a subject.
fn corrupt(what: &str) -> StoreError {
    StoreError::Corrupt(what.to_owned())
}

pub(crate) fn number(n: u64) -> AttributeValue {
    AttributeValue::N(n.to_string())
}

fn read_number(attributes: &Attributes, name: &str) -> Option<u64> {
    attributes.get(name)?.as_n().ok()?.parse().ok()
}

#[cfg(test)]
mod tests;
