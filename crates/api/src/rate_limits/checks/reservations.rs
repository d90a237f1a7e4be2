//! Reservations and refunds.

use headgate_ratelimit::{
    ReservationId,
    usecase::{
        AnyQuestion, CheckError, RefundError, Refunded, ReservationError, ReservationRequest,
        Verdict,
        check::reservations::{
            Charge, CheckSettlement, Costs, ReservationState, ReservationUse, Reserved,
        },
    },
};
use headgate_telemetry::{metrics::Stopwatch, trace::Span};

use super::MeteredChecks;

impl MeteredChecks {
    /// Reserves the costs of several checks, all or nothing.
    pub async fn reserve(
        &self,
        request: &ReservationRequest<'_>,
    ) -> Result<Reserved, ReservationError> {
        let stopwatch = Stopwatch::start(&*self.clock);
        let done = self.check.reserve(request).await;
        self.metrics.reserved(
            "reserve",
            outcome(&done, |done| match &done.reservation {
                None => "denied",
                Some(reservation) if reservation.replayed => "replayed",
                Some(_) => "done",
            }),
        );
        let done = done?;
        let verdicts = || done.verdicts.iter().flatten();
        let all = done.reservation.is_some();
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

    /// Charges what was spent while a reservation runs, and renews it.
    pub async fn use_reservation(
        &self,
        id: &ReservationId,
        charge: &Charge,
    ) -> Result<ReservationUse, ReservationError> {
        let done = self.check.use_reservation(id, charge).await;
        self.metrics.reserved("use", outcome(&done, |_| "done"));
        done
    }

    /// Ends a reservation for what was spent in all.
    pub async fn settle_reservation(
        &self,
        id: &ReservationId,
        costs: &Costs,
        overdraft: bool,
    ) -> Result<Vec<CheckSettlement>, ReservationError> {
        let done = self.check.settle_reservation(id, costs, overdraft).await;
        self.metrics.reserved("settle", outcome(&done, |_| "done"));
        done
    }

    /// Ends a reservation without a charge.
    pub async fn cancel_reservation(&self, id: &ReservationId) -> Result<(), ReservationError> {
        let done = self.check.cancel_reservation(id).await;
        self.metrics.reserved("cancel", outcome(&done, |()| "done"));
        done
    }

    /// Returns the state of a reservation.
    pub async fn reservation(
        &self,
        id: &ReservationId,
    ) -> Result<ReservationState, ReservationError> {
        self.check.reservation(id).await
    }

    /// Decides a check whose units can be refunded by `request_id`. Returns `None` if no rule
    /// matches.
    pub async fn decide_refundable(
        &self,
        question: &AnyQuestion<'_>,
        request_id: &str,
    ) -> Result<Option<Verdict>, RefundError> {
        let stopwatch = Stopwatch::start(&*self.clock);
        let verdict = self.check.check_refundable(question, request_id).await?;
        match &verdict {
            Some(verdict) => self.metrics.decided(&verdict.decision, stopwatch.elapsed()),
            None => self.metrics.unlimited(stopwatch.elapsed()),
        }
        self.note(question, verdict.as_ref());
        if self.traced
            && let Some(verdict) = &verdict
        {
            Span::decided(&[&verdict.decision]);
        }
        Ok(verdict)
    }

    /// Returns what a check took under `request_id`, once.
    pub async fn refund(
        &self,
        question: &AnyQuestion<'_>,
        request_id: &str,
    ) -> Result<Refunded, RefundError> {
        let done = self.check.refund(question, request_id).await;
        self.metrics.refunded(match &done {
            Ok(done) if done.replayed => "replayed",
            Ok(_) => "done",
            Err(RefundError::Check(CheckError::Store(_))) => "failed",
            Err(_) => "invalid",
        });
        done
    }

    /// Records a denial, and warns of a decision that the store did not make.
    pub(super) fn note(&self, question: &AnyQuestion<'_>, verdict: Option<&Verdict>) {
        self.note_denial_of_any(question, verdict);
        self.warn_if_any_degraded(question, verdict);
    }
}

/// The outcome of an operation, for the metric.
pub(super) fn outcome<T>(
    done: &Result<T, ReservationError>,
    of: impl FnOnce(&T) -> &'static str,
) -> &'static str {
    match done {
        Ok(done) => of(done),
        Err(ReservationError::Ended) => "expired",
        Err(
            ReservationError::Store(_)
            | ReservationError::DeniedBy(_)
            | ReservationError::Check(_, CheckError::Store(_)),
        ) => "failed",
        Err(_) => "invalid",
    }
}
