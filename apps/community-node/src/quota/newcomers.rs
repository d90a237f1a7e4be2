//! Cache of keys without a quota of their own.

use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use headgate_quota::Revision;

/// Keys without a quota of their own. Valid for one revision of the policies: in the next there may
/// be room again, or a quota for them.
#[derive(Debug, Default)]
pub(super) struct Newcomers(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    policies: Revision,
    subjects: HashSet<String>,
}

/// Maximum number of keys in the cache.
const MAX: usize = 100_000;

// === impl Newcomers ===

impl Newcomers {
    /// Returns true if `subject` is known to have no policy in this revision.
    pub(super) fn include(&self, subject: &str, policies: Revision) -> bool {
        let known = self.known();
        known.policies == policies && known.subjects.contains(subject)
    }

    /// Remembers that `subject` has no policy in this revision.
    pub(super) fn remember(&self, subject: &str, policies: Revision) {
        let mut known = self.known();
        if known.policies != policies || known.subjects.len() >= MAX {
            *known = Known { policies, ..Known::default() };
        }
        known.subjects.insert(subject.to_owned());
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bounded_number_is_known_and_for_one_set_of_policies() {
        let (newcomers, policies) = (Newcomers::default(), Revision(1));
        newcomers.remember("a", policies);
        assert!(newcomers.include("a", policies));
        assert!(!newcomers.include("b", policies));
        assert!(!newcomers.include("a", Revision(2)));
        newcomers.remember("b", Revision(2));
        assert!(!newcomers.include("a", policies));
        for n in 0..MAX {
            newcomers.remember(&n.to_string(), policies);
        }
        assert_eq!(newcomers.known().subjects.len(), MAX);
        newcomers.remember("one more", policies);
        assert_eq!(newcomers.known().subjects.len(), 1);
    }
}
