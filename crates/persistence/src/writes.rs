//! Tracks the result of the last write.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The error of the last write, if it failed. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writes(Arc<Mutex<Option<String>>>);

// === impl Writes ===

impl Writes {
    /// Records a failed write.
    pub(crate) fn failed(&self, error: String) {
        *self.lock() = Some(error);
    }

    /// Records a successful write.
    pub(crate) fn succeeded(&self) {
        *self.lock() = None;
    }

    /// Returns the error of the last write, if it failed.
    pub(crate) fn error(&self) -> Option<String> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
