//! Policies that could not be committed.

use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::pending::Pending;
use crate::{Operation, QuotaId};

/// Policies that could not be committed, until one of their operations is.
#[derive(Debug, Default)]
pub(super) struct Suspects(Mutex<HashSet<QuotaId>>);

// === impl Suspects ===

impl Suspects {
    /// Maximum number. Beyond it all are forgotten, and those that still fail are found again.
    const MAX: usize = 1_024;

    pub(super) fn add(&self, id: &QuotaId) {
        let mut suspects = self.lock();
        if !suspects.contains(id) {
            if suspects.len() >= Self::MAX {
                suspects.clear();
            }
            suspects.insert(id.clone());
        }
    }

    /// Removes the policies of operations that were committed.
    pub(super) fn clear(&self, committed: &[Operation]) {
        let mut suspects = self.lock();
        for operation in committed {
            suspects.remove(operation.policy());
        }
    }

    /// Takes the operations on suspects out of a batch, in order.
    pub(super) fn take_from(&self, batch: &mut Vec<Pending>) -> Vec<Pending> {
        let suspects = self.lock();
        if suspects.is_empty() {
            return Vec::new();
        }
        batch.extract_if(.., |pending| suspects.contains(pending.id())).collect()
    }

    /// The set is valid even after a panic elsewhere.
    fn lock(&self) -> MutexGuard<'_, HashSet<QuotaId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
