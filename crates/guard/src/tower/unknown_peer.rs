//! Requests of which nobody knows where they come from.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// What becomes of requests without a peer address.
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
    began: OnceLock<Instant>,
    /// Milliseconds after that from which the next one may be written.
    next_at: AtomicU64,
}

const COMPLAIN_EVERY: Duration = Duration::from_secs(10);

impl Complaint {
    pub(super) fn write(&self) {
        let now = self.began.get_or_init(Instant::now).elapsed().as_millis() as u64;
        let next = now + COMPLAIN_EVERY.as_millis() as u64;
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
