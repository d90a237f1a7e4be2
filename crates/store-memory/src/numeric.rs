//! Subjects that are numbers, such as addresses.

use headgate::{Check, Clock, Cost, InvalidCheck, Key, Limit, Outcome, Verb, algorithm::Meter};

use crate::{MemoryStore, fingerprint::Shape};

/// The key of a subject that is a number, which is faster to hash than a [`Key`]. It never names
/// the same subject as a `Key` does.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct NumericKey {
    /// Separates the kinds of subjects of a program.
    pub space: u64,
    /// The subject.
    pub number: u64,
}

/// Placeholder for checks whose key is not used.
const NO_KEY: Key<'static> = match Key::new("-") {
    Ok(key) => key,
    Err(_) => panic!("an invalid key"),
};

impl<C: Clock> MemoryStore<C> {
    /// Takes `cost` units for a subject that is a number, if `limit` admits them.
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
                Ok(decided) => return Ok(decided.outcome(bucket, cost)),
                Err(new) => {
                    if let Some(outcome) = new.acquire(bucket, cost) {
                        return Ok(outcome);
                    }
                }
            }
        }
        let outcome = self.acquire_numeric_slow(subject, limit, cost)?;
        Ok(outcome)
    }

    /// Takes `cost` as [`acquire_numeric`](Self::acquire_numeric) does, and returns an outcome only
    /// for a denial, which saves time.
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
                Ok(decided) if decided.is_allowed() => return Ok(None),
                Ok(decided) => return Ok(Some(decided.denial(bucket, cost))),
                Err(new) => {
                    if let Some(outcome) = new.acquire(bucket, cost) {
                        return Ok(denied(outcome));
                    }
                }
            }
        }
        self.acquire_numeric_slow(subject, limit, cost).map(denied)
    }

    /// Slow path: other algorithms, a full store, and invalid checks.
    #[inline(never)]
    fn acquire_numeric_slow(
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

/// Leaves out the number, which may be an address.
impl std::fmt::Debug for NumericKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NumericKey").finish_non_exhaustive()
    }
}
