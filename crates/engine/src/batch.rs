//! Checks that a store decides together.

mod owned;
mod terms;

use std::collections::HashSet;

use smallvec::SmallVec;
use thiserror::Error;

use crate::{CheckMode, Cost, FailMode, Key, Limit};

use self::terms::Terms;

pub use owned::OwnedBatch;
pub use terms::{Place, Spent};

/// One limit to check: may the subject `key` take `cost` under `limit`?
#[derive(Clone, Copy, Debug)]
pub struct Check<'a> {
    key: Key<'a>,
    limit: &'a Limit,
    cost: Cost,
    fail_mode: FailMode,
    mode: CheckMode,
    terms: Terms,
}

/// Checks that are decided together: if one is denied, none takes anything, unless a [`CheckMode`]
/// says otherwise.
///
/// ```
/// use std::time::Duration;
///
/// use headgate::{Batch, Check, Cost, Key, Limit, Verb};
/// use headgate_store_memory::MemoryStore;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = MemoryStore::default();
/// let per_user = Limit::token_bucket(10, Duration::from_secs(1))?;
/// let per_tenant = Limit::token_bucket(1, Duration::from_secs(60))?;
/// let batch = Batch::new([
///     Check::new(Key::new("user:42")?, &per_user, Cost::ONE)?,
///     Check::new(Key::new("tenant:7")?, &per_tenant, Cost::ONE)?,
/// ])?;
///
/// assert!(store.apply_now(Verb::Acquire, &batch).iter().all(|outcome| outcome.allowed));
/// // The tenant is denied, so nothing is taken from the user.
/// let outcomes = store.apply_now(Verb::Acquire, &batch);
/// assert_eq!([outcomes[0].remaining, outcomes[1].remaining], [9, 0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Batch<'a>(SmallVec<[Check<'a>; 2]>);

/// Error for a check that can never be admitted.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidCheck {
    /// The cost exceeds the limit, so no retry could succeed.
    #[error("cost {cost} is above the limit of {capacity} and can never be admitted")]
    CostAboveLimit {
        /// Requested units.
        cost: Cost,
        /// Maximum number of units available at once.
        capacity: u64,
    },
}

/// Error for checks that are not a valid batch.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum BatchError {
    /// There are no checks.
    #[error("a batch needs at least one check")]
    Empty,
    /// There are more than [`Batch::MAX_CHECKS`].
    #[error("a batch holds at most {max} checks, got {0}", max = Batch::MAX_CHECKS)]
    TooMany(usize),
    /// Two checks have the same key. Add their costs instead.
    #[error("duplicate key in batch: {0:?}")]
    DuplicateKey(String),
}

// === impl Check ===

impl<'a> Check<'a> {
    /// A check of `cost` units for `key` under `limit`.
    pub const fn new(key: Key<'a>, limit: &'a Limit, cost: Cost) -> Result<Self, InvalidCheck> {
        let capacity = limit.capacity();
        if cost.get() > capacity {
            return Err(InvalidCheck::CostAboveLimit { cost, capacity });
        }
        let (fail_mode, mode) = (FailMode::Capped, CheckMode::Required);
        Ok(Self { key, limit, cost, fail_mode, mode, terms: Terms::None })
    }

    /// The same check of another subject.
    #[must_use]
    pub const fn with_key(self, key: Key<'a>) -> Self {
        Self { key, ..self }
    }

    /// Sets the failure mode, which decides while the store is unavailable; [`FailMode::Capped`] by
    /// default.
    #[must_use]
    pub const fn with_fail_mode(self, fail_mode: FailMode) -> Self {
        Self { fail_mode, ..self }
    }

    /// Sets the mode of the check within its batch; [`CheckMode::Required`] by default.
    #[must_use]
    pub const fn with_mode(self, mode: CheckMode) -> Self {
        Self { mode, ..self }
    }

    /// The subject.
    pub const fn key(&self) -> Key<'a> {
        self.key
    }

    /// The limit.
    pub const fn limit(&self) -> &'a Limit {
        self.limit
    }

    /// Requested units.
    pub const fn cost(&self) -> Cost {
        self.cost
    }

    /// The failure mode, which decides while the store is unavailable.
    pub const fn fail_mode(&self) -> FailMode {
        self.fail_mode
    }

    /// The mode of the check within its batch.
    pub const fn mode(&self) -> CheckMode {
        self.mode
    }
}

// === impl Batch ===

impl<'a> Batch<'a> {
    /// Maximum number of checks in one batch.
    pub const MAX_CHECKS: usize = 1024;

    /// Up to this many keys are compared with each other, which is faster than a hash set.
    const LINEAR_MAX: usize = 32;

    /// The batch of `checks`.
    pub fn new(checks: impl IntoIterator<Item = Check<'a>>) -> Result<Self, BatchError> {
        let checks: SmallVec<[Check<'a>; 2]> =
            checks.into_iter().take(Self::MAX_CHECKS + 1).collect();
        match checks.len() {
            0 => return Err(BatchError::Empty),
            1 => return Ok(Self(checks)),
            n if n > Self::MAX_CHECKS => return Err(BatchError::TooMany(n)),
            _ => {}
        }
        match Self::duplicate(&checks) {
            Some(key) => Err(BatchError::DuplicateKey(key.to_string())),
            None => Ok(Self(checks)),
        }
    }

    /// A key that occurs twice in `checks`.
    fn duplicate(checks: &[Check<'a>]) -> Option<Key<'a>> {
        if checks.len() > Self::LINEAR_MAX {
            let mut names = HashSet::with_capacity(checks.len());
            return checks.iter().map(Check::key).find(|key| !names.insert(key.to_string()));
        }
        let is_duplicate = |i: usize| checks[..i].iter().any(|it| same_name(it.key, checks[i].key));
        (1..checks.len()).find(|i| is_duplicate(*i)).map(|i| checks[i].key)
    }

    /// The same batch, in which each check spent what `spent` says of its position.
    pub(crate) fn spending(mut self, spent: impl Fn(usize) -> Spent) -> Self {
        for (i, check) in self.0.iter_mut().enumerate() {
            *check = check.spent(spent(i));
        }
        self
    }

    /// The same batch, whose checks of concurrency limits take places under this lease.
    #[must_use]
    pub fn holding(&self, place: Place) -> Self {
        let hold = |check: &Check<'a>| match check.limit().places() {
            Some(_) => check.holding(place),
            None => *check,
        };
        Self(self.0.iter().map(hold).collect())
    }

    /// The checks, in order.
    pub fn checks(&self) -> &[Check<'a>] {
        &self.0
    }
}

impl<'a> From<Check<'a>> for Batch<'a> {
    fn from(check: Check<'a>) -> Self {
        Self(SmallVec::from_iter([check]))
    }
}

/// Returns `true` if two keys have the same text, even if it is split into different parts.
fn same_name<'a>(a: Key<'a>, b: Key<'a>) -> bool {
    let ends = |key: Key<'a>| [key.parts()[0], key.parts()[2]];
    // Fast path: with the same prefix and suffix, only the subjects can differ.
    if ends(a) == ends(b) {
        return a.subject() == b.subject();
    }
    let bytes = |key: Key<'_>| key.parts().map(str::as_bytes).concat();
    let len = |key: Key<'_>| key.parts().map(str::len).iter().sum::<usize>();
    len(a) == len(b) && bytes(a) == bytes(b)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::KeySpace;

    #[test]
    fn costs_above_the_limit_are_refused() {
        let limit = Limit::token_bucket(5, Duration::from_secs(1)).unwrap();
        let key = Key::new("u").unwrap();
        let check = |cost| Check::new(key, &limit, Cost::new(cost).unwrap()).map(|_| ());
        assert_eq!(check(5), Ok(()));
        let error = check(6).unwrap_err().to_string();
        assert_eq!(error, "cost 6 is above the limit of 5 and can never be admitted");
    }

    #[test]
    fn a_check_of_another_subject_differs_in_nothing_else() {
        let limit = Limit::token_bucket(5, Duration::from_secs(1)).unwrap();
        let key = |name| Key::new(name).unwrap();
        let check = Check::new(key("u1"), &limit, Cost::new(2).unwrap()).unwrap();
        let check = check.with_fail_mode(FailMode::Closed).with_mode(CheckMode::Probe);
        let other = check.with_key(key("u2"));
        assert_eq!((other.key(), other.cost()), (key("u2"), check.cost()));
        assert_eq!((other.fail_mode(), other.mode()), (FailMode::Closed, CheckMode::Probe));
    }

    #[test]
    fn batches_are_bounded_and_have_no_duplicate_keys() {
        let limit = Limit::token_bucket(5, Duration::from_secs(1)).unwrap();
        let check = |key| Check::new(key, &limit, Cost::ONE).unwrap();
        let key = |name| Key::new(name).unwrap();
        assert_eq!(Batch::new([]).map(|_| ()), Err(BatchError::Empty));
        let space = KeySpace::new("", "b");
        let same = Batch::new([check(key("ab")), check(key("a").within(&space))]);
        assert_eq!(same.map(|_| ()), Err(BatchError::DuplicateKey("ab".into())));
        let other = Batch::new([check(key("ac")), check(key("a").within(&space))]);
        assert_eq!(other.map(|_| ()), Ok(()), "same length, different text");
        let names: Vec<String> = (0..=Batch::MAX_CHECKS).map(|i| i.to_string()).collect();
        let many = Batch::new(names.iter().map(|name| check(key(name))));
        assert_eq!(many.map(|_| ()), Err(BatchError::TooMany(Batch::MAX_CHECKS + 1)));
        let most = &names[..Batch::MAX_CHECKS];
        assert!(Batch::new(most.iter().map(|name| check(key(name)))).is_ok());

        for count in [2, Batch::LINEAR_MAX, Batch::LINEAR_MAX + 1, Batch::MAX_CHECKS - 1] {
            let duplicated = names[..count].iter().map(|name| check(key(name)));
            let duplicated = duplicated.chain([check(key("1"))]);
            assert_eq!(
                Batch::new(duplicated).map(|_| ()),
                Err(BatchError::DuplicateKey("1".into())),
                "{count}"
            );
        }
    }
}
