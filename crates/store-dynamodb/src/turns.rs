//! Callers in one process take turns at a subject, rather than undo each other's work.

use std::hash::{BuildHasher, RandomState};

use tokio::sync::{Mutex, MutexGuard};

/// The right to write, by subject. It keeps nobody else in the world from writing: conditions on
/// writes do that. It only saves the requests that would fail.
#[derive(Debug)]
pub(crate) struct Turns {
    hasher: RandomState,
    stripes: Box<[Mutex<()>]>,
}

/// Held while writing.
pub(crate) type Turn<'a> = Vec<MutexGuard<'a, ()>>;

impl Turns {
    /// Few enough to be small, so many that strangers seldom wait for each other.
    const STRIPES: usize = 4096;

    pub(crate) fn new() -> Self {
        let stripes = (0..Self::STRIPES).map(|_| Mutex::default()).collect();
        Self { hasher: RandomState::new(), stripes }
    }

    /// A turn at all of these, if nobody has one at any.
    pub(crate) fn try_take(&self, names: &[String]) -> Option<Turn<'_>> {
        self.places(names).into_iter().map(|i| self.stripes[i].try_lock().ok()).collect()
    }

    /// A turn at all of these, after those who came before.
    pub(crate) async fn take(&self, names: &[String]) -> Turn<'_> {
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
