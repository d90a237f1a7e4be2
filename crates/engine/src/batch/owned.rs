//! A batch that owns its parts.

use smallvec::SmallVec;

use super::{Batch, Check, terms::Terms};
use crate::{CheckMode, Cost, FailMode, KeySpace, Limit, OwnedKey};

/// A [`Batch`] that owns its parts, and so can outlive a request.
#[derive(Clone, Debug)]
pub struct OwnedBatch(SmallVec<[OwnedCheck; 1]>);

#[derive(Clone, Debug)]
struct OwnedCheck {
    key: OwnedKey,
    limit: Limit,
    cost: Cost,
    fail_mode: FailMode,
    mode: CheckMode,
    terms: Terms,
}

impl Batch<'_> {
    /// A copy that owns its parts.
    pub fn to_owned(&self) -> OwnedBatch {
        let own = |check: &Check<'_>| OwnedCheck {
            key: check.key.to_owned(),
            limit: check.limit.clone(),
            cost: check.cost,
            fail_mode: check.fail_mode,
            mode: check.mode,
            terms: check.terms,
        };
        OwnedBatch(self.0.iter().map(own).collect())
    }
}

impl OwnedBatch {
    /// Number of checks.
    #[expect(clippy::len_without_is_empty, reason = "a batch has at least one check")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The key spaces of the checks, in order.
    pub fn spaces(&self) -> SmallVec<[KeySpace<'_>; 2]> {
        self.0.iter().map(|check| check.key.space()).collect()
    }

    /// The borrowed form; `spaces` are this batch's [`spaces`](Self::spaces).
    pub fn as_batch<'a>(&'a self, spaces: &'a [KeySpace<'a>]) -> Batch<'a> {
        // Costs and keys were validated when the batch was created.
        let checks = self.0.iter().zip(spaces).map(|(check, space)| Check {
            key: check.key.as_key(space),
            limit: &check.limit,
            cost: check.cost,
            fail_mode: check.fail_mode,
            mode: check.mode,
            terms: check.terms,
        });
        Batch(checks.collect())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Key;

    #[test]
    fn an_owned_batch_equals_the_batch_it_was_made_from() {
        let limit = Limit::token_bucket(5, Duration::from_secs(1)).unwrap();
        let space = KeySpace::new("a:", ":60");
        let check = |name| Check::new(Key::new(name).unwrap(), &limit, Cost::new(2).unwrap());
        let plain = check("plain").unwrap();
        let special = check("special")
            .unwrap()
            .with_fail_mode(FailMode::Closed)
            .with_mode(CheckMode::Optional);
        let special = Check { key: special.key.within(&space), ..special };
        let batch = Batch::new([plain, special]).unwrap();
        let owned = batch.to_owned();
        assert_eq!(format!("{:?}", owned.as_batch(&owned.spaces())), format!("{batch:?}"));
    }
}
