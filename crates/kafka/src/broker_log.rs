//! librdkafka repeats itself several times a second while brokers are away. The log hears of it once a minute, and when it
//! is over.

use std::{
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rdkafka::error::RDKafkaErrorCode;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use crate::error::Trouble;

/// How often the log hears that something is still wrong.
const INTERVAL: Duration = Duration::from_secs(60);

/// What is wrong with the brokers, if anything is.
#[derive(Debug)]
pub(crate) struct Journal {
    brokers: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    trouble: Option<Trouble>,
    /// When the log last heard of trouble, and how often it has not since.
    said: Option<Instant>,
    unsaid: u64,
    /// Whether the log believes that something is wrong.
    is_believed: bool,
}

// === impl Journal ===

impl Journal {
    /// A journal of these brokers, of which nothing is known.
    pub(crate) fn new(brokers: &[String]) -> Self {
        Self { brokers: brokers.join(","), state: Mutex::default() }
    }

    /// Something is wrong.
    pub(crate) fn note(&self, code: RDKafkaErrorCode, reason: &str) {
        debug!(%code, "Kafka client: {reason}");
        let mut state = self.lock();
        // That no broker is left follows from what was said of each of them, which says more.
        if code != RDKafkaErrorCode::AllBrokersDown || state.trouble.is_none() {
            state.trouble = Some(Trouble { code, reason: reason.to_owned() });
        }
        if let Some(unsaid) = state.speak(Instant::now()) {
            state.is_believed = true;
            warn!(brokers = self.brokers, %code, unsaid, "Kafka is in trouble: {reason}");
        }
    }

    /// A message was acknowledged.
    pub(crate) fn all_is_well(&self) {
        let mut state = self.lock();
        state.trouble = None;
        if mem::take(&mut state.is_believed) {
            info!(brokers = self.brokers, "Kafka acknowledges messages again");
        }
    }

    /// What is wrong, as far as we have heard.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        self.lock().trouble.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl State ===

impl State {
    /// Whether to say something now, and then how much was not said before.
    fn speak(&mut self, now: Instant) -> Option<u64> {
        if self.said.is_some_and(|said| now.duration_since(said) < INTERVAL) {
            self.unsaid += 1;
            return None;
        }
        self.said = Some(now);
        Some(mem::take(&mut self.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speaks_once_a_minute() {
        let (mut state, start) = (State::default(), Instant::now());
        assert_eq!(state.speak(start), Some(0));
        for second in 1..60 {
            assert_eq!(state.speak(start + Duration::from_secs(second)), None);
        }
        assert_eq!(state.speak(start + INTERVAL), Some(59));
        assert_eq!(state.speak(start + INTERVAL), None);
    }

    #[test]
    fn remembers_why_no_broker_is_left() {
        let journal = Journal::new(&[]);
        journal.note(RDKafkaErrorCode::Authentication, "wrong password");
        journal.note(RDKafkaErrorCode::AllBrokersDown, "1/1 brokers are down");
        assert_eq!(journal.trouble().unwrap().reason, "wrong password");
        journal.all_is_well();
        assert!(journal.trouble().is_none());
    }
}
