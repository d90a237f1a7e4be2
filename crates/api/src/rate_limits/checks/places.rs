//! Places of concurrency limits.

use std::time::Duration;

use headgate_ratelimit::{
    PlaceLeaseId,
    usecase::{
        AnyQuestion, CheckError, ReservationError, ReservationRequest,
        check::{
            holders::{HeldLease, RuleHolders},
            places::{Acquired, Renewed},
        },
    },
};
use headgate_telemetry::{metrics::Stopwatch, trace::Span};

use super::{MeteredChecks, reservations::outcome};

impl MeteredChecks {
    /// Takes places under a lease, and units of the other limits, all or nothing.
    pub async fn acquire(
        &self,
        request: &ReservationRequest<'_>,
    ) -> Result<Acquired, ReservationError> {
        let stopwatch = Stopwatch::start(&*self.clock);
        let done = self.check.acquire(request).await;
        let of = |done: &Acquired| if done.lease.is_some() { "done" } else { "denied" };
        self.metrics.reserved("acquire", outcome(&done, of));
        let done = done?;
        let verdicts = || done.verdicts.iter().flatten();
        let all = done.lease.is_some();
        for verdict in verdicts().filter(|verdict| all || !verdict.decision.allowed) {
            self.metrics.decided(&verdict.decision, stopwatch.elapsed());
        }
        for (check, verdict) in request.checks.iter().zip(&done.verdicts) {
            self.note(check, verdict.as_ref());
        }
        if self.traced {
            Span::decided(&verdicts().map(|verdict| &verdict.decision).collect::<Vec<_>>());
        }
        Ok(done)
    }

    /// Lists the holders of the places that an acquisition of this check would take.
    pub async fn holders(
        &self,
        question: &AnyQuestion<'_>,
        max: usize,
    ) -> Result<Vec<RuleHolders>, CheckError> {
        self.check.holders(question, max).await
    }

    /// Finds a lease among those holders by its handle.
    pub async fn find_lease(
        &self,
        question: &AnyQuestion<'_>,
        handle: &str,
    ) -> Result<Option<HeldLease>, CheckError> {
        self.check.find_lease(question, handle).await
    }

    /// Renews a lease.
    pub async fn renew_lease(
        &self,
        id: &PlaceLeaseId,
        lease: Option<Duration>,
    ) -> Result<Renewed, ReservationError> {
        let done = self.check.renew_lease(id, lease).await;
        self.metrics.reserved("renew", outcome(&done, |_| "done"));
        done
    }

    /// Frees the places of a lease. Returns `false` if it had ended.
    pub async fn release_lease(&self, id: &PlaceLeaseId) -> Result<bool, ReservationError> {
        let done = self.check.release_lease(id).await;
        let of = |released: &bool| if *released { "done" } else { "expired" };
        self.metrics.reserved("release", outcome(&done, of));
        done
    }
}
