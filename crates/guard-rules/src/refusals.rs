use headgate::{Clock as _, OutageLog, SystemClock, Timestamp};
use headgate_ratelimit::usecase::CheckError;
use tracing::{error, warn};

/// Logs requests that are refused without a decision: one line of each kind every ten seconds.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    clock: SystemClock,
    unknown_peers: OutageLog,
    undecided: OutageLog,
}

impl Refusals {
    /// A request without a peer address.
    #[cold]
    pub(crate) fn unknown_peer(&self) {
        if let Some(requests) = self.unknown_peers.count(self.now()) {
            error!(
                requests,
                "refused a request without a peer address: serve the router with \
                 `into_make_service_with_connect_info::<SocketAddr>()`, insert a `PeerAddress` into \
                 the extensions of requests, or set `Extractors::unknown_peers`"
            );
        }
    }

    /// A request that the rules could not decide.
    #[cold]
    pub(crate) fn undecided(&self, error: &CheckError) {
        if let Some(requests) = self.undecided.count(self.now()) {
            warn!(%error, requests, "cannot decide a request by rules; it is denied");
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.clock.steady())
    }
}
