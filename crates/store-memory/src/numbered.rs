//! Subjects that are numbers already, such as addresses.

use headgate::{Check, CheckError, Clock, Cost, Key, Limit, Outcome, Verb, limit::Rule};

use crate::MemoryStore;

/// A subject that is known by a number, which costs less to find than one with a key. It is never
/// the same as one with a key.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Numbered {
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
    #[inline]
    pub fn acquire_numbered(
        &self,
        subject: Numbered,
        limit: &Limit,
        cost: Cost,
    ) -> Result<Outcome, CheckError> {
        if let Rule::TokenBucket(meter) | Rule::LeakyBucket(meter) = limit.rule()
            && cost.get() <= limit.capacity()
            && let fingerprint = self.fingerprints.of_number(subject, limit)
            && let Some(outcome) = self.acquire_at(meter, fingerprint, cost)
        {
            return Ok(outcome);
        }
        self.acquire_numbered_slowly(subject, limit, cost)
    }

    /// The long way: other algorithms, no room, and what is wrong with a check.
    #[inline(never)]
    fn acquire_numbered_slowly(
        &self,
        subject: Numbered,
        limit: &Limit,
        cost: Cost,
    ) -> Result<Outcome, CheckError> {
        let check = Check::new(NO_KEY, limit, cost)?;
        let fingerprint = self.fingerprints.of_number(subject, limit);
        Ok(self.apply_to(Verb::Acquire, &[check], &[fingerprint])[0])
    }
}

/// Says nothing of the number: it may be an address.
impl std::fmt::Debug for Numbered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Numbered").finish_non_exhaustive()
    }
}
