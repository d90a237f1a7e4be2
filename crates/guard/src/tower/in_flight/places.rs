//! The shared limits of a class.

use std::{net::IpAddr, time::Duration};

use headgate::{Batch, BatchLimiter, Check, Decision, Key, Limit, Permit, ReserveError};

use crate::{Backend, Reason, SharedInFlight, name::Name};

/// The shared limits of a class, and the keys of their places in the store.
pub(crate) struct Places {
    class: Name,
    limits: SharedInFlight,
    /// Key of all clients.
    all: Box<str>,
    /// Prefix of the keys of single clients.
    clients: Box<str>,
}

/// Tag of the keys: requests that are open.
const TAG: &str = "open";

impl Places {
    pub(in crate::tower) fn new(class: Name, limits: SharedInFlight, backend: &Backend) -> Self {
        let clients = backend.prefix(class.as_str(), TAG);
        let all = clients.trim_end_matches(':').into();
        Self { class, limits, all, clients }
    }

    pub(super) const fn class(&self) -> &str {
        self.class.as_str()
    }

    pub(super) const fn lease(&self) -> Duration {
        self.limits.lease
    }

    /// Returns `true` if there is a limit of each client.
    pub(super) const fn count_clients(&self) -> bool {
        self.limits.per_client.is_some()
    }

    /// Takes a place under each limit, all or nothing; `None` if there are no limits.
    pub(super) async fn acquire(
        &self,
        limiter: &BatchLimiter,
        backend: &Backend,
        address: IpAddr,
    ) -> Result<Option<Permit>, ReserveError> {
        let client = backend.address_key(&self.clients, address);
        let SharedInFlight { per_client, total, .. } = &self.limits;
        let checks = [
            check(backend, &client, per_client.as_ref()),
            check(backend, &self.all, total.as_ref()),
        ];
        // The keys are valid and distinct, so the only possible error is an empty batch.
        let Ok(batch) = Batch::new(checks.into_iter().flatten()) else { return Ok(None) };
        let result = limiter.acquire(&batch, self.lease()).await;
        backend.report_reserved(&result);
        result.map(|(permit, _)| Some(permit))
    }

    /// The reason of a denial.
    pub(super) const fn reason(&self, denied: &Decision) -> Reason {
        if self.count_clients() && denied.decided_by == 0 {
            Reason::InFlight
        } else {
            Reason::Capacity
        }
    }
}

fn check<'a>(backend: &Backend, key: &'a str, limit: Option<&'a Limit>) -> Option<Check<'a>> {
    backend.check(Key::new(key).ok()?, limit?)
}
