//! Subjects that are numbers already, such as addresses.

use headgate::{Check, Clock, Cost, InvalidCheck, Key, Limit, Outcome, Verb, algorithm::Meter};

use crate::{MemoryStore, fingerprint::Shape};

/// A subject that is known by a number, which costs less to find than one with a key. It is never
/// the same as one with a key.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct NumericKey {
    /// Keeps the program's own kinds of subjects apart.
    pub space: u64,
    /// Which one of that kind.
    pub number: u64,
}

/// Stands where a check needs a key and nobody reads it.
const NO_KEY: Key<'static> = match Key::new("-") {
    Ok(key) => key,
    Err(_) => panic!("not a key"),
};

impl<C: Clock> MemoryStore<C> {
    /// Takes `cost` from the allowance of a subject that is known by a number, if it fits.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use headgate::{Cost, Limit};
    /// use headgate_store_memory::{MemoryStore, NumericKey};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// const USERS: u64 = 1;
    /// let store = MemoryStore::default();
    /// let limit = Limit::token_bucket(10, Duration::from_secs(60))?;
    /// let user = NumericKey { space: USERS, number: 42 };
    /// assert_eq!(store.acquire_numeric(user, &limit, Cost::ONE)?.remaining, 9);
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn acquire_numeric(
        &self,
        subject: NumericKey,
        limit: &Limit,
        cost: Cost,
    ) -> Result<Outcome, InvalidCheck> {
        if let Some((bucket, shape)) = Shape::of_bucket(limit)
            && cost.get() <= bucket.capacity()
        {
            match self.take(bucket, self.fingerprints.of_number(subject, shape), cost) {
                Ok(taken) => return Ok(taken.outcome(bucket, cost)),
                Err(absent) => {
                    if let Some(outcome) = absent.take_first(bucket, cost) {
                        return Ok(outcome);
                    }
                }
            }
        }
        let outcome = self.acquire_numeric_slowly(subject, limit, cost)?;
        Ok(outcome)
    }

    /// Takes `cost` as [`acquire_numeric`](Self::acquire_numeric) does, and says no more than it
    /// must: nothing of an admission, and of a denial how the subject stands.
    #[inline]
    pub fn admit_numeric(
        &self,
        subject: NumericKey,
        limit: &Limit,
        cost: Cost,
    ) -> Result<Option<Outcome>, InvalidCheck> {
        let denied = |outcome: Outcome| Some(outcome).filter(|it| !it.allowed);
        if let Some((bucket, shape)) = Shape::of_bucket(limit)
            && cost.get() <= bucket.capacity()
        {
            match self.take(bucket, self.fingerprints.of_number(subject, shape), cost) {
                Ok(taken) if taken.is_allowed() => return Ok(None),
                Ok(taken) => return Ok(Some(taken.outcome(bucket, cost))),
                Err(absent) => {
                    if let Some(outcome) = absent.take_first(bucket, cost) {
                        return Ok(denied(outcome));
                    }
                }
            }
        }
        self.acquire_numeric_slowly(subject, limit, cost).map(denied)
    }

    /// The long way: other algorithms, no room, and what is wrong with a check.
    #[inline(never)]
    fn acquire_numeric_slowly(
        &self,
        subject: NumericKey,
        limit: &Limit,
        cost: Cost,
    ) -> Result<Outcome, InvalidCheck> {
        let check = Check::new(NO_KEY, limit, cost)?;
        let fingerprint = self.fingerprints.of_number(subject, Shape::of(limit));
        Ok(self.apply_to(Verb::Acquire, &[check], &[fingerprint])[0])
    }
}

/// Says nothing of the number: it may be an address.
impl std::fmt::Debug for NumericKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NumericKey").finish_non_exhaustive()
    }
}
