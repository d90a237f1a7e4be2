//! Retires connections that must not be used again.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// Moment before which every connection is retired; none until the first renewal. Clones share it.
///
/// A pool checks a connection before it hands it out, so one that is in use is retired later.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cutoff(Arc<Mutex<Option<Instant>>>);

// === impl Cutoff ===

impl Cutoff {
    /// Retires every connection that is open now.
    pub(crate) fn renew(&self) {
        *self.lock() = Some(Instant::now());
    }

    /// Returns true if a connection of this age may still be used.
    pub(crate) fn admits(&self, age: Duration) -> bool {
        self.lock().is_none_or(|cutoff| age < cutoff.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retires_older_connections_and_admits_newer_ones() {
        let cutoff = Cutoff::default();
        assert!(cutoff.admits(Duration::MAX));
        cutoff.clone().renew();
        assert!(!cutoff.admits(Duration::from_secs(60)));
        assert!(cutoff.admits(Duration::ZERO));
    }
}
