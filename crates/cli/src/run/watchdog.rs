//! Ends a command before its lease ends, even while a renewal waits for an answer.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    time::Instant,
};

use super::{lease::warn, now, signals::Target};

/// Watches the deadline of a command. Clones share its state.
#[derive(Clone)]
pub(super) struct Watchdog {
    state: Arc<Mutex<State>>,
    target: Target,
    keep_running: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The command runs with its place.
    Running,
    /// The deadline passed while it ran.
    Lost,
    /// The command ended with its place.
    Ended,
}

impl Watchdog {
    pub(super) fn new(target: Target, keep_running: bool) -> Self {
        Self { state: Arc::new(Mutex::new(State::Running)), target, keep_running }
    }

    /// Waits for a deadline that `renewed` does not move in time, or for the end of renewals.
    pub(super) fn watch(&self, mut deadline: Instant, renewed: &mpsc::Receiver<Instant>) {
        loop {
            let left = deadline.saturating_duration_since(now());
            if left.is_zero() {
                return self.lose();
            }
            match renewed.recv_timeout(left) {
                Ok(later) => deadline = later,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                // Renewals have ended: the command has, too, or the place is lost.
                Err(mpsc::RecvTimeoutError::Disconnected) => return self.lose(),
            }
        }
    }

    /// Ends the watch: the command has ended. Returns `true` if its place was lost before.
    pub(super) fn finish(&self) -> bool {
        let mut state = self.lock();
        if *state == State::Running {
            *state = State::Ended;
        }
        *state == State::Lost
    }

    fn lose(&self) {
        // Held until the signal is sent: a command that has ended must not get it, because another
        // process may have its id.
        let mut state = self.lock();
        if *state != State::Running {
            return;
        }
        *state = State::Lost;
        if self.keep_running {
            warn("the place is lost; the command goes on without it");
        } else {
            warn("the place is lost: terminating the command");
            self.target.terminate();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
