//! Rate-limited logging of broker errors.
//!
//! librdkafka repeats an error several times a second while brokers are down. It is logged once a
//! minute, and so is the recovery.

use std::{
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rdkafka::error::RDKafkaErrorCode;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use crate::error::BrokerError;

/// Interval of repeated warnings.
const INTERVAL: Duration = Duration::from_secs(60);

/// The last error of the brokers, and when it was logged.
#[derive(Debug)]
pub(crate) struct BrokerLog {
    brokers: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last_error: Option<BrokerError>,
    /// Time of the last warning, and the number suppressed since.
    logged_at: Option<Instant>,
    suppressed: u64,
    /// True if an error was logged, but no recovery since.
    is_reported: bool,
}

// === impl BrokerLog ===

impl BrokerLog {
    /// A log without errors.
    pub(crate) fn new(brokers: &[String]) -> Self {
        Self { brokers: brokers.join(","), state: Mutex::default() }
    }

    /// Records an error.
    pub(crate) fn error(&self, code: RDKafkaErrorCode, reason: &str) {
        debug!(%code, "Kafka client: {reason}");
        let mut state = self.lock();
        // `AllBrokersDown` follows from the errors of the brokers, which are more specific.
        if code != RDKafkaErrorCode::AllBrokersDown || state.last_error.is_none() {
            state.last_error = Some(BrokerError { code, reason: reason.to_owned() });
        }
        if let Some(suppressed) = state.should_log(Instant::now()) {
            state.is_reported = true;
            warn!(brokers = self.brokers, %code, suppressed, "Kafka error: {reason}");
        }
    }

    /// Records the acknowledgement of a message.
    pub(crate) fn acknowledged(&self) {
        let mut state = self.lock();
        state.last_error = None;
        if mem::take(&mut state.is_reported) {
            info!(brokers = self.brokers, "Kafka acknowledges messages again");
        }
    }

    /// The last error, unless a message was acknowledged since.
    pub(crate) fn last_error(&self) -> Option<BrokerError> {
        self.lock().last_error.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl State ===

impl State {
    /// Returns the number of suppressed warnings if one is due.
    fn should_log(&mut self, now: Instant) -> Option<u64> {
        if self.logged_at.is_some_and(|logged_at| now.duration_since(logged_at) < INTERVAL) {
            self.suppressed += 1;
            return None;
        }
        self.logged_at = Some(now);
        Some(mem::take(&mut self.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warns_once_a_minute() {
        let (mut state, start) = (State::default(), Instant::now());
        assert_eq!(state.should_log(start), Some(0));
        for second in 1..60 {
            assert_eq!(state.should_log(start + Duration::from_secs(second)), None);
        }
        assert_eq!(state.should_log(start + INTERVAL), Some(59));
        assert_eq!(state.should_log(start + INTERVAL), None);
    }

    #[test]
    fn keeps_the_specific_error_when_all_brokers_are_down() {
        let broker_log = BrokerLog::new(&[]);
        broker_log.error(RDKafkaErrorCode::Authentication, "wrong password");
        broker_log.error(RDKafkaErrorCode::AllBrokersDown, "1/1 brokers are down");
        assert_eq!(broker_log.last_error().unwrap().reason, "wrong password");
        broker_log.acknowledged();
        assert!(broker_log.last_error().is_none());
    }
}
