//! Places for clients that follow events.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Streams that are open, in all and for each caller. Clones count together.
#[derive(Clone, Debug)]
pub(crate) struct Streams {
    free: Arc<Semaphore>,
    open: Arc<Mutex<HashMap<String, usize>>>,
}

/// One place, for as long as it is held.
#[derive(Debug)]
pub(crate) struct Place {
    _permit: OwnedSemaphorePermit,
    caller: Option<String>,
    open: Arc<Mutex<HashMap<String, usize>>>,
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPlace {
    /// As many streams are open as there may be.
    Full,
    /// This caller has as many open as one may have.
    CallerHasTooMany,
}

/// The most streams at a time: each asks the database once a second.
const MAX: usize = 64;

/// The most of one caller, so that no token keeps the others out.
const MAX_OF_ONE: usize = 16;

// === impl Streams ===

impl Streams {
    pub(super) fn new() -> Self {
        Self { free: Arc::new(Semaphore::new(MAX)), open: Arc::default() }
    }

    /// Takes a place for `caller`; `None` where nobody says who they are.
    pub(crate) fn take(&self, caller: Option<&str>) -> Result<Place, NoPlace> {
        let permit = Arc::clone(&self.free).try_acquire_owned().map_err(|_| NoPlace::Full)?;
        if let Some(caller) = caller {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            let count = open.entry(caller.to_owned()).or_default();
            if *count >= MAX_OF_ONE {
                return Err(NoPlace::CallerHasTooMany);
            }
            *count += 1;
        }
        let (caller, open) = (caller.map(str::to_owned), Arc::clone(&self.open));
        Ok(Place { _permit: permit, caller, open })
    }

    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.free.available_permits()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(caller) = &self.caller else { return };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(caller) {
            *count -= 1;
            if *count == 0 {
                open.remove(caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_cannot_hold_every_place() {
        let streams = Streams::new();
        let mut held: Vec<_> = (0..MAX_OF_ONE).map(|_| streams.take(Some("a")).unwrap()).collect();
        assert_eq!(streams.take(Some("a")).unwrap_err(), NoPlace::CallerHasTooMany);
        assert_eq!(streams.free(), MAX - MAX_OF_ONE, "a refusal holds nothing");
        held.push(streams.take(Some("b")).unwrap());
        held.remove(0);
        held.push(streams.take(Some("a")).unwrap());
        held.extend((held.len()..MAX).map(|_| streams.take(None).unwrap()));
        assert_eq!(streams.take(Some("c")).unwrap_err(), NoPlace::Full);
        drop(held);
        assert!(streams.open.lock().unwrap().is_empty());
        assert_eq!(streams.free(), MAX);
    }
}
