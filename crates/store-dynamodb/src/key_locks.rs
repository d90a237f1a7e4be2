//! Callers in one process take turns at a subject, rather than undo each other's work.

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

/// The right to write, by subject. It keeps nobody else in the world from writing: conditions on
/// writes do that. It only saves the requests that would fail.
#[derive(Debug)]
pub(crate) struct Turns {
    hasher: RandomState,
    stripes: Box<[Mutex<()>]>,
    waiting: AtomicUsize,
}

/// Held while writing.
pub(crate) type Turn<'a> = Vec<MutexGuard<'a, ()>>;

/// One caller who waits, for as long as it does.
struct Waiting<'a>(&'a AtomicUsize);

// === impl Turns ===

impl Turns {
    /// Few enough to be small, so many that strangers seldom wait for each other.
    const STRIPES: usize = 4096;

    /// How many callers wait at once: one more is told that there are too many.
    const MAX_WAITING: usize = 1024;

    pub(crate) fn new() -> Self {
        let stripes = (0..Self::STRIPES).map(|_| Mutex::default()).collect();
        Self { hasher: RandomState::new(), stripes, waiting: AtomicUsize::new(0) }
    }

    /// A turn at all of these, if nobody has one at any.
    pub(crate) fn try_take(&self, names: &[String]) -> Option<Turn<'_>> {
        self.places(names).into_iter().map(|i| self.stripes[i].try_lock().ok()).collect()
    }

    /// A turn at all of these, after those who came before.
    ///
    /// # Errors
    ///
    /// [`StoreError::Overloaded`] if too many wait already, or it takes longer than `patience`.
    pub(crate) async fn take(
        &self,
        names: &[String],
        patience: Duration,
    ) -> Result<Turn<'_>, StoreError> {
        let _waiting = Waiting::of(&self.waiting)?;
        let taken = timeout(patience, self.take_all(names)).await;
        taken.map_err(|_| StoreError::Overloaded)
    }

    async fn take_all(&self, names: &[String]) -> Turn<'_> {
        let mut turn = Turn::new();
        for place in self.places(names) {
            turn.push(self.stripes[place].lock().await);
        }
        turn
    }

    /// In order, so that batches never wait in a circle.
    fn places(&self, names: &[String]) -> Vec<usize> {
        let place = |name| self.hasher.hash_one(name) as usize % Self::STRIPES;
        let mut places: Vec<_> = names.iter().map(place).collect();
        places.sort_unstable();
        places.dedup();
        places
    }
}

// === impl Waiting ===

impl<'a> Waiting<'a> {
    fn of(waiting: &'a AtomicUsize) -> Result<Self, StoreError> {
        let before = waiting.fetch_add(1, Relaxed);
        let own = Self(waiting);
        if before < Turns::MAX_WAITING { Ok(own) } else { Err(StoreError::Overloaded) }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_waits_too_long_or_behind_too_many_is_told_so() {
        let (turns, names) = (Turns::new(), ["k".to_owned()]);
        let held = turns.try_take(&names).unwrap();
        let patience = Duration::from_secs(1);
        let error = turns.take(&names, patience).await.unwrap_err();
        assert!(matches!(error, StoreError::Overloaded), "{error}");
        assert_eq!(turns.waiting.load(Relaxed), 0);

        let mut context = Context::from_waker(Waker::noop());
        let mut queue: Vec<_> =
            (0..=Turns::MAX_WAITING).map(|_| Box::pin(turns.take(&names, patience))).collect();
        let told = queue
            .iter_mut()
            .map(|it| it.as_mut().poll(&mut context))
            .filter(Poll::is_ready)
            .count();
        assert_eq!(told, 1, "the last one, at once");
        drop((queue, held));
        assert!(turns.take(&names, patience).await.is_ok());
    }
}
