//! A bound on clients that follow events.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Counts open streams, in total and of each caller. Clones count together.
#[derive(Clone, Debug)]
pub struct EventStreams {
    free: Arc<Semaphore>,
    open: Arc<Mutex<HashMap<String, usize>>>,
}

/// Permission for one stream, until it is dropped.
#[derive(Debug)]
pub struct StreamPermit {
    _permit: OwnedSemaphorePermit,
    caller: Option<String>,
    open: Arc<Mutex<HashMap<String, usize>>>,
}

/// The limit that denies another stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamLimit {
    /// Too many streams are open.
    Total,
    /// The caller has too many streams open.
    PerCaller,
}

/// Maximum number of streams: each reads the database once a second.
const MAX: usize = 64;

/// Maximum number of streams of one caller, so that none locks out the others.
const MAX_PER_CALLER: usize = 16;

// === impl EventStreams ===

impl EventStreams {
    pub(crate) fn new() -> Self {
        Self { free: Arc::new(Semaphore::new(MAX)), open: Arc::default() }
    }

    /// Permits a stream of `caller`; `None` while authentication is off.
    ///
    /// # Errors
    ///
    /// Returns the limit that is reached.
    pub fn acquire(&self, caller: Option<&str>) -> Result<StreamPermit, StreamLimit> {
        let permit = Arc::clone(&self.free).try_acquire_owned().map_err(|_| StreamLimit::Total)?;
        if let Some(caller) = caller {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            let count = open.entry(caller.to_owned()).or_default();
            if *count >= MAX_PER_CALLER {
                return Err(StreamLimit::PerCaller);
            }
            *count += 1;
        }
        let (caller, open) = (caller.map(str::to_owned), Arc::clone(&self.open));
        Ok(StreamPermit { _permit: permit, caller, open })
    }

    /// Returns the number of streams that may still be opened.
    pub fn available(&self) -> usize {
        self.free.available_permits()
    }
}

impl Drop for StreamPermit {
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
    fn one_caller_cannot_take_every_stream() {
        let streams = EventStreams::new();
        let mut held: Vec<_> =
            (0..MAX_PER_CALLER).map(|_| streams.acquire(Some("a")).unwrap()).collect();
        assert_eq!(streams.acquire(Some("a")).unwrap_err(), StreamLimit::PerCaller);
        assert_eq!(streams.available(), MAX - MAX_PER_CALLER, "a denied stream holds nothing");
        held.push(streams.acquire(Some("b")).unwrap());
        held.remove(0);
        held.push(streams.acquire(Some("a")).unwrap());
        held.extend((held.len()..MAX).map(|_| streams.acquire(None).unwrap()));
        assert_eq!(streams.acquire(Some("c")).unwrap_err(), StreamLimit::Total);
        drop(held);
        assert!(streams.open.lock().unwrap().is_empty());
        assert_eq!(streams.available(), MAX);
    }
}
