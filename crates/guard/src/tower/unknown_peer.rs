//! Requests without a peer address.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use headgate::{Clock, SystemClock};

/// Treatment of requests without a peer address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownPeers {
    /// They are answered 500, and the log says why: the service was put together wrongly.
    #[default]
    Refuse,
    /// They are counted together, as one client's: for services that have no such addresses, such as
    /// those on Unix sockets.
    CountTogether,
}

/// Complains in the log, at most every ten seconds.
#[derive(Debug, Default)]
pub(super) struct Complaint {
    clock: SystemClock,
    /// Microseconds of the steady clock from which the next one may be written.
    next_at: AtomicU64,
}

const COMPLAIN_EVERY: Duration = Duration::from_secs(10);

impl Complaint {
    pub(super) fn write(&self) {
        let now = self.clock.steady();
        let next = now + COMPLAIN_EVERY.as_micros() as u64;
        let due = |at| (at <= now).then_some(next);
        if self.next_at.fetch_update(Relaxed, Relaxed, due).is_ok() {
            tracing::error!(
                "Refused a request whose peer address is unknown: serve the router with \
                 `into_make_service_with_connect_info::<SocketAddr>()`, insert a `PeerAddress` into \
                 the extensions of requests, or tell the guard where to look with `GuardBuilder::peer`"
            );
        }
    }
}
