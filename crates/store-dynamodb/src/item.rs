//! An account as an item, and back.
//!
//! `expires_at` is the second at which the account means nothing any more, rounded up: after it, DynamoDB may
//! delete the item at any time, and until it does, the item is read as if it had.

mod state;

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use headgate::{
    Account, Check, Limit, State, StoreError, Timestamp, Verb, algorithm::bucket, limit::Parameters,
};

use crate::step::Seen;

/// Attributes by name.
pub(crate) type Attributes = HashMap<String, AttributeValue>;

pub(crate) const IDENTIFIER: &str = "identifier";
pub(crate) const EXPIRES_AT: &str = "expires_at";
pub(crate) const VERSION: &str = "version";
const STATE: &str = "state";

/// Times beyond the year 9999 are nobody's.
const MAX_SECONDS: u64 = 253_402_300_799;

/// What is to be written of one subject.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) account: Account,
    at: Timestamp,
    expires_at: u64,
}

/// What a write finds if nobody else wrote in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// No item.
    Nothing,
    /// The item as it was read. One that another program wrote has no version.
    Unchanged { version: Option<u64>, expires_at: u64 },
}

// === impl Item ===

impl Item {
    /// The item of an account, unless it has nothing to remember.
    pub(crate) fn new(check: &Check<'_>, account: Account, now: Timestamp) -> Option<Self> {
        // Leases that run out give back what they hold: the answer knows when that leaves nothing. Until
        // the last of them has, it must be found by its commit.
        let free_after =
            account.outcome(check.limit(), Verb::Peek, check.cost(), now, true).reset_after;
        let until = account.leases.iter().map(|lease| lease.expires_at);
        let until = until.fold(now + free_after, Ord::max);
        (until > now).then(|| Self { account, at: now, expires_at: until.as_secs_ceil() })
    }

    /// The attributes of a new version of the subject `name`.
    pub(crate) fn attributes(&self, name: &str, version: u64) -> Attributes {
        let mut state = state::encode(&self.account, self.at);
        // Who changes `expires_at` alone leaves a state that does not belong to it.
        state.insert(EXPIRES_AT.to_owned(), number(self.expires_at));
        HashMap::from([
            (IDENTIFIER.to_owned(), AttributeValue::S(name.to_owned())),
            (EXPIRES_AT.to_owned(), number(self.expires_at)),
            (VERSION.to_owned(), number(version)),
            (STATE.to_owned(), AttributeValue::M(state)),
        ])
    }
}

// === impl Seen ===

impl Seen {
    /// A subject of which nothing is known.
    pub(crate) fn nothing() -> Self {
        let expected = Expected::Nothing;
        Self { account: Account::default(), at: Timestamp::default(), expected }
    }

    /// Reads an item that was found for `limit`.
    pub(crate) fn read(
        item: &Attributes,
        limit: &Limit,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let expires_at = read_number(item, EXPIRES_AT).filter(|seconds| *seconds <= MAX_SECONDS);
        let expires_at = expires_at.ok_or_else(|| corrupt("expires_at is no Unix time"))?;
        let version = match item.get(VERSION) {
            None => None,
            Some(_) => {
                Some(read_number(item, VERSION).ok_or_else(|| corrupt("version is no number"))?)
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
                    state::decode(state).ok_or_else(|| corrupt("state does not read"))?;
                Ok(Self { account, at, ..nothing })
            }
            None | Some(AttributeValue::M(_)) => {
                let account = taken_until(expires_at, limit)
                    .ok_or_else(|| corrupt("expires_at alone says nothing of this limit"))?;
                Ok(Self { account, ..nothing })
            }
            Some(_) => Err(corrupt("state is no map")),
        }
    }
}

/// A cooldown of which only the end is known.
fn taken_until(expires_at: u64, limit: &Limit) -> Option<Account> {
    let (Parameters::TokenBucket(bucket) | Parameters::LeakyBucket(bucket)) = limit.parameters()
    else {
        return None;
    };
    let full_at = expires_at * 1_000_000;
    let state = bucket::State { full_at, fraction: 0, rate: bucket.rate() };
    let account = Account { state: State::Bucket(state), leases: Vec::new() };
    (bucket.burst() == 1).then_some(account)
}

/// Whose item it is stays out of errors: keys name subjects.
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
