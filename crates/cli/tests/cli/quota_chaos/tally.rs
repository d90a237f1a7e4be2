//! Counts of responses.

use std::{
    fmt,
    sync::{Arc, Condvar, Mutex, MutexGuard},
    time::Duration,
};

/// Counts of all clients. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Tally(Arc<(Mutex<Counts>, Condvar)>);

#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    /// Units of increments with status 200.
    pub(super) acknowledged: u64,
    /// Units of increments that were sent, but whose clients gave up without a response.
    pub(super) unanswered: u64,
    /// Denied requests.
    pub(super) refused: u64,
    /// Repetitions under the same id.
    pub(super) repeated: u64,
    pub(super) stopped: bool,
}

impl Tally {
    /// Changes the counts and wakes waiters.
    pub(super) fn note(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.lock());
        self.0.1.notify_all();
    }

    pub(super) fn counts(&self) -> Counts {
        *self.lock()
    }

    /// Waits until `met` returns true for the counts; `false` after a timeout.
    pub(super) fn wait(&self, met: impl Fn(&Counts) -> bool) -> bool {
        let timeout = Duration::from_secs(300);
        let waited = self.0.1.wait_timeout_while(self.lock(), timeout, |counts| !met(counts));
        !waited.unwrap().1.timed_out()
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.0.lock().unwrap()
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { acknowledged, unanswered, refused, repeated, .. } = self;
        write!(
            f,
            "acknowledged {acknowledged}, unanswered {unanswered}, refused {refused} times, \
             repeated {repeated} times"
        )
    }
}
