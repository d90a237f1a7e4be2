//! Requests without a peer address.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use headgate::{Clock, SystemClock};

/// Treatment of requests without a peer address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnknownPeers {
    /// Respond with 500 and log the cause: the service is misconfigured.
    #[default]
    Refuse,
    /// Count all of them as one client: for services without peer addresses, such as those on Unix
    /// sockets.
    CountTogether,
}

/// Logs refused requests, at most once every ten seconds.
#[derive(Debug, Default)]
pub(super) struct UnknownPeerLog {
    clock: SystemClock,
    /// Microseconds of the steady clock from which the next line may be written.
    next_at: AtomicU64,
}

const LOG_INTERVAL: Duration = Duration::from_secs(10);

impl UnknownPeerLog {
    pub(super) fn write(&self) {
        let now = self.clock.steady();
        let next = now + LOG_INTERVAL.as_micros() as u64;
        let due = |at| (at <= now).then_some(next);
        if self.next_at.fetch_update(Relaxed, Relaxed, due).is_ok() {
            tracing::error!(
                "refused a request without a peer address: serve the router with \
                 `into_make_service_with_connect_info::<SocketAddr>()`, insert a `PeerAddress` into \
                 the extensions of requests, or set `GuardBuilder::peer`"
            );
        }
    }
}
