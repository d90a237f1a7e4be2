//! Reservations of quotas as REST and gRPC serve them.

use headgate_quota::{
    QuotaId, Reservation, ReservationId, SettledFor,
    usecase::{IncrementUsage, ReservationError, ReservationRequest, ReserveUsage, Reserved},
};
use headgate_telemetry::trace::Span;

use super::{QuotaMetrics, QuotaRefusal};

/// Reserving units, and using, settling and cancelling reservations, with metrics.
pub struct QuotaReservations {
    reserve: ReserveUsage,
    metrics: QuotaMetrics,
}

// === impl QuotaReservations ===

impl QuotaReservations {
    pub(super) fn new(increments: &IncrementUsage, metrics: QuotaMetrics) -> Self {
        Self { reserve: ReserveUsage::new(increments), metrics }
    }

    /// Reserves units. Too few that are left are an error.
    pub async fn reserve(
        &self,
        id: &QuotaId,
        request: ReservationRequest<'_>,
    ) -> Result<Reserved, QuotaRefusal> {
        let done = self.reserve.reserve(id, request).await;
        Span::admitted(done.is_ok());
        self.answer("reserve", done)
    }

    /// Charges units while the reservation stays pending.
    pub async fn spend(
        &self,
        id: &QuotaId,
        reservation: &ReservationId,
        amount: u64,
        request_id: Option<&str>,
    ) -> Result<Reserved, QuotaRefusal> {
        self.answer("use", self.reserve.spend(id, reservation, amount, request_id).await)
    }

    /// Charges units in all, and ends the reservation.
    pub async fn settle(
        &self,
        id: &QuotaId,
        reservation: &ReservationId,
        settled_for: SettledFor,
    ) -> Result<Reserved, QuotaRefusal> {
        self.answer("settle", self.reserve.settle(id, reservation, settled_for).await)
    }

    /// Ends the reservation without a charge.
    pub async fn cancel(
        &self,
        id: &QuotaId,
        reservation: &ReservationId,
    ) -> Result<Reserved, QuotaRefusal> {
        self.answer("cancel", self.reserve.cancel(id, reservation).await)
    }

    /// Returns a reservation.
    pub async fn get(
        &self,
        id: &QuotaId,
        reservation: &ReservationId,
    ) -> Result<Reservation, QuotaRefusal> {
        Ok(self.reserve.get(id, reservation).await?)
    }

    /// Counts the outcome.
    fn answer(
        &self,
        operation: &'static str,
        done: Result<Reserved, ReservationError>,
    ) -> Result<Reserved, QuotaRefusal> {
        self.metrics.reserved(operation, &done);
        Ok(done?)
    }
}
