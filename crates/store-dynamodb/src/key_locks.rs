//! Locks by key within this process.

use std::{
    hash::{BuildHasher, RandomState},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use headgate::StoreError;
use tokio::{
    sync::{Mutex, MutexGuard},
    time::timeout,
};

/// Striped locks by key. They do not protect the items, which conditional writes do: they only
/// avoid conflicting requests of this process.
#[derive(Debug)]
pub(crate) struct KeyLocks {
    hasher: RandomState,
    stripes: Box<[Mutex<()>]>,
    waiting: AtomicUsize,
}

/// The locks of a batch, held while writing.
pub(crate) type KeyGuards<'a> = Vec<MutexGuard<'a, ()>>;

/// Counts one waiting call.
struct Waiter<'a>(&'a AtomicUsize);

// === impl KeyLocks ===

impl KeyLocks {
    /// Number of locks: enough that different keys rarely share one.
    const STRIPES: usize = 4096;

    /// Maximum number of waiting calls.
    const MAX_WAITING: usize = 1024;

    pub(crate) fn new() -> Self {
        let stripes = (0..Self::STRIPES).map(|_| Mutex::default()).collect();
        Self { hasher: RandomState::new(), stripes, waiting: AtomicUsize::new(0) }
    }

    /// Locks all keys, if none of them is locked.
    pub(crate) fn try_lock_all(&self, names: &[String]) -> Option<KeyGuards<'_>> {
        self.positions(names).into_iter().map(|i| self.stripes[i].try_lock().ok()).collect()
    }

    /// Waits for the locks of all keys.
    ///
    /// # Errors
    ///
    /// [`StoreError::Overloaded`] if too many calls wait, or if it takes longer than `limit`.
    pub(crate) async fn lock_all(
        &self,
        names: &[String],
        limit: Duration,
    ) -> Result<KeyGuards<'_>, StoreError> {
        let _waiting = Waiter::new(&self.waiting)?;
        let taken = timeout(limit, self.wait_for_all(names)).await;
        taken.map_err(|_| StoreError::Overloaded)
    }

    async fn wait_for_all(&self, names: &[String]) -> KeyGuards<'_> {
        let mut guards = KeyGuards::new();
        for position in self.positions(names) {
            guards.push(self.stripes[position].lock().await);
        }
        guards
    }

    /// Returns the stripes of these keys, sorted, so that batches cannot deadlock.
    fn positions(&self, names: &[String]) -> Vec<usize> {
        let position = |name| self.hasher.hash_one(name) as usize % Self::STRIPES;
        let mut positions: Vec<_> = names.iter().map(position).collect();
        positions.sort_unstable();
        positions.dedup();
        positions
    }
}

// === impl Waiter ===

impl<'a> Waiter<'a> {
    fn new(waiting: &'a AtomicUsize) -> Result<Self, StoreError> {
        let before = waiting.fetch_add(1, Relaxed);
        let own = Self(waiting);
        if before < KeyLocks::MAX_WAITING { Ok(own) } else { Err(StoreError::Overloaded) }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waiting_is_bounded_in_time_and_number() {
        let (key_locks, names) = (KeyLocks::new(), ["k".to_owned()]);
        let held = key_locks.try_lock_all(&names).unwrap();
        let limit = Duration::from_secs(1);
        let error = key_locks.lock_all(&names, limit).await.unwrap_err();
        assert!(matches!(error, StoreError::Overloaded), "{error}");
        assert_eq!(key_locks.waiting.load(Relaxed), 0);

        let mut context = Context::from_waker(Waker::noop());
        let mut queue: Vec<_> = (0..=KeyLocks::MAX_WAITING)
            .map(|_| Box::pin(key_locks.lock_all(&names, limit)))
            .collect();
        let ready = queue
            .iter_mut()
            .map(|it| it.as_mut().poll(&mut context))
            .filter(Poll::is_ready)
            .count();
        assert_eq!(ready, 1, "the last one, at once");
        drop((queue, held));
        assert!(key_locks.lock_all(&names, limit).await.is_ok());
    }
}
