//! How often the relay looks after its connections, and how long it waits for them.

use std::time::Duration;

/// How often the relay looks after its connections, and how long it waits for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How often a connection is looked after: who did not say who it is, who has gone.
    pub tick: Duration,
    /// How long a client may take to read its answer. Whoever is slower is let go.
    pub answer: Duration,
    /// A client that was silent this long is asked whether it is there.
    pub ping: Duration,
    /// A client that was silent this long is gone.
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
