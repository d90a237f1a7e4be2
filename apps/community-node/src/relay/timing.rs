//! Intervals and timeouts of the relay's connections.

use std::time::Duration;

/// Intervals and timeouts of the relay's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Interval at which a connection is checked for authentication and liveness.
    pub tick: Duration,
    /// Timeout of a write; a slower client is disconnected.
    pub answer: Duration,
    /// Silence after which a client is sent a ping.
    pub ping: Duration,
    /// Silence after which a client is disconnected.
    pub silence: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            tick: Duration::from_secs(5),
            answer: Duration::from_secs(30),
            ping: Duration::from_secs(30),
            silence: Duration::from_secs(90),
        }
    }
}
