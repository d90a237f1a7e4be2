//! Whether the database takes writes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Why the last write failed, if it did. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writes(Arc<Mutex<Option<String>>>);

// === impl Writes ===

impl Writes {
    /// Notes that a write failed.
    pub(crate) fn failed(&self, error: String) {
        *self.lock() = Some(error);
    }

    /// Notes that a write succeeded.
    pub(crate) fn succeeded(&self) {
        *self.lock() = None;
    }

    /// Returns why the last write failed, if it did.
    pub(crate) fn error(&self) -> Option<String> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
