//! What clients saw.

use std::{
    fmt,
    sync::{Arc, Condvar, Mutex, MutexGuard},
    time::Duration,
};

/// What all clients saw. Clones count together.
#[derive(Clone, Default)]
pub(super) struct Tally(Arc<(Mutex<Counts>, Condvar)>);

#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    /// Units that were answered with 200.
    pub(super) acknowledged: u64,
    /// Units that were asked for completely, whose client gave up without an answer.
    pub(super) unanswered: u64,
    /// Requests that did not fit.
    pub(super) refused: u64,
    /// Requests that were sent again under the same id.
    pub(super) repeated: u64,
    pub(super) stopped: bool,
}

impl Tally {
    /// Notes something, and wakes whoever waits for it.
    pub(super) fn note(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.lock());
        self.0.1.notify_all();
    }

    pub(super) fn counts(&self) -> Counts {
        *self.lock()
    }

    /// Waits until the counts are such; says whether that came to be.
    pub(super) fn wait(&self, met: impl Fn(&Counts) -> bool) -> bool {
        let patience = Duration::from_secs(30);
        let waited = self.0.1.wait_timeout_while(self.lock(), patience, |counts| !met(counts));
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
