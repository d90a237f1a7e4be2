//! Decisions on reservations.

use std::collections::HashMap;

use super::{
    Account, Reservation, ReservationChange, ReservationOutcome, ReservationResult, Reserve, Step,
};
use crate::{LastUse, ReservationAction, ReservationId, ReservationStatus, SettledFor};

/// The reservations that a batch needs.
#[derive(Debug, Default)]
pub(super) struct Reservations {
    by_id: HashMap<(Account, ReservationId), Kept>,
    by_request_id: HashMap<(Account, String), ReservationId>,
}

/// A reservation, and whether it must be written.
#[derive(Debug)]
struct Kept {
    reservation: Reservation,
    changed: bool,
}

// === impl Reservations ===

impl Reservations {
    /// Adds a reservation that was read from the database.
    pub(super) fn add(&mut self, account: Account, reservation: Reservation) {
        self.put(account, Kept { reservation, changed: false });
    }

    /// Returns those that must be written.
    pub(super) fn changed(&self) -> impl Iterator<Item = (&Account, &Reservation)> {
        let changed = self.by_id.iter().filter(|(_, kept)| kept.changed);
        changed.map(|((account, _), kept)| (account, &kept.reservation))
    }

    fn put(&mut self, account: Account, kept: Kept) {
        let id = &kept.reservation.id;
        if let Some(request_id) = &kept.reservation.request_id {
            self.by_request_id.insert((account.clone(), request_id.clone()), id.clone());
        }
        self.by_id.insert((account, id.clone()), kept);
    }

    fn requested(&self, account: &Account, request_id: &str) -> Option<&Reservation> {
        let id = self.by_request_id.get(&(account.clone(), request_id.to_owned()))?;
        let kept = self.by_id.get(&(account.clone(), id.clone()))?;
        Some(&kept.reservation)
    }
}

// === impl Step ===

impl Step<'_> {
    /// Sets units aside. With a disabled policy the reservation holds nothing.
    pub(super) fn reserve(
        &mut self,
        reserve: &Reserve,
        reservations: &mut Reservations,
    ) -> ReservationResult {
        let (amount, limit) = (reserve.amount, self.terms.limit);
        let earlier = reserve.request_id.as_deref();
        if let Some(earlier) = earlier.and_then(|id| reservations.requested(self.account, id)) {
            return if earlier.amount == amount {
                self.answer(ReservationOutcome::Replayed, Some(earlier))
            } else {
                self.answer(ReservationOutcome::Conflict, None)
            };
        }
        let metered = self.terms.enabled;
        if metered && amount > limit {
            return self.answer(ReservationOutcome::ExceedsLimit, None);
        }
        if metered && !self.balance.reserve(amount, limit) {
            self.balance.record_events(self.account, false, true, &mut self.recorder);
            return self.answer(ReservationOutcome::Denied, None);
        }
        let reservation = Reservation {
            id: reserve.id.clone(),
            request_id: reserve.request_id.clone(),
            amount,
            held: if metered { amount } else { 0 },
            charged: 0,
            returned: 0,
            owed: 0,
            status: ReservationStatus::Pending,
            metered,
            ttl: reserve.ttl,
            expires_at: self.now + reserve.ttl,
            created_at: self.now,
            last_use: None,
            settled_for: None,
        };
        let result = self.answer(ReservationOutcome::Done, Some(&reservation));
        reservations.put(self.account.clone(), Kept { reservation, changed: true });
        result
    }

    /// Uses, settles or cancels a reservation.
    pub(super) fn change(
        &mut self,
        change: &ReservationChange,
        reservations: &mut Reservations,
    ) -> ReservationResult {
        let key = (self.account.clone(), change.id.clone());
        let Some(kept) = reservations.by_id.get_mut(&key) else {
            return self.answer(ReservationOutcome::Unknown, None);
        };
        let reservation = &mut kept.reservation;
        if reservation.is_due(self.now) {
            self.release(reservation, ReservationStatus::Expired);
            kept.changed = true;
        }
        let outcome = match &change.action {
            ReservationAction::Use { amount, request_id } => {
                self.spend(reservation, *amount, request_id.as_ref())
            }
            ReservationAction::Settle(wanted) => self.settle(reservation, *wanted),
            ReservationAction::Cancel => self.cancel(reservation),
        };
        kept.changed |= outcome == ReservationOutcome::Done;
        let reservation = &kept.reservation;
        self.answer(outcome, Some(reservation))
    }

    /// Charges `amount` and holds as much for the next use, as far as the limit allows. A stream
    /// that is not told to stop therefore holds at least one unit of its next use.
    fn spend(
        &mut self,
        reservation: &mut Reservation,
        amount: u64,
        request_id: Option<&String>,
    ) -> ReservationOutcome {
        if let Some(last) = &reservation.last_use
            && request_id.is_some()
            && last.request_id.as_ref() == request_id
        {
            let same = last.amount == amount;
            return if same { ReservationOutcome::Replayed } else { ReservationOutcome::Conflict };
        }
        if reservation.status != ReservationStatus::Pending {
            return ReservationOutcome::Ended;
        }
        let (charged, owed) = self.charge_held(reservation, amount, false);
        let counted = reservation.metered && self.terms.enabled;
        if counted {
            let missing = amount.max(1).saturating_sub(reservation.held);
            let more = missing.min(self.balance.available(self.terms.limit, false));
            if more > 0 && self.balance.reserve(more, self.terms.limit) {
                reservation.held += more;
            }
        }
        let stop = counted && reservation.held == 0;
        let request_id = request_id.cloned();
        reservation.last_use = Some(LastUse { request_id, amount, charged, owed, stop });
        // A stream that outlives its period cannot charge that period forever.
        if self.now < self.balance.period_end {
            reservation.expires_at = reservation.expires_at.max(self.now + reservation.ttl);
        }
        self.balance.record_events(self.account, charged > 0, owed > 0, &mut self.recorder);
        ReservationOutcome::Done
    }

    /// Charges the units that it took in all, and returns the rest. What was charged by use stays
    /// charged.
    fn settle(&mut self, reservation: &mut Reservation, wanted: SettledFor) -> ReservationOutcome {
        match reservation.status {
            ReservationStatus::Pending => {}
            ReservationStatus::Settled if reservation.settled_for == Some(wanted) => {
                return ReservationOutcome::Replayed;
            }
            _ => return ReservationOutcome::Ended,
        }
        let amount = wanted.amount.saturating_sub(reservation.charged);
        let (charged, owed) = self.charge_held(reservation, amount, wanted.overdraft);
        self.release(reservation, ReservationStatus::Settled);
        (reservation.owed, reservation.settled_for) = (owed, Some(wanted));
        self.balance.record_events(self.account, charged > 0, owed > 0, &mut self.recorder);
        ReservationOutcome::Done
    }

    fn cancel(&mut self, reservation: &mut Reservation) -> ReservationOutcome {
        match reservation.status {
            ReservationStatus::Pending => {}
            ReservationStatus::Cancelled => return ReservationOutcome::Replayed,
            _ => return ReservationOutcome::Ended,
        }
        self.release(reservation, ReservationStatus::Cancelled);
        ReservationOutcome::Done
    }

    /// Charges `amount` from what the reservation holds, and the rest from what the limit leaves.
    /// Returns the charged and the owed units. Without a policy that counts, only held units are
    /// charged, and nothing is owed.
    fn charge_held(
        &mut self,
        reservation: &mut Reservation,
        amount: u64,
        overdraft: bool,
    ) -> (u64, u64) {
        let held = amount.min(reservation.held);
        reservation.held -= held;
        self.balance.reserved = self.balance.reserved.saturating_sub(held);
        self.balance.used += held;
        let more = amount - held;
        let counted = reservation.metered && self.terms.enabled;
        let available = self.balance.available(self.terms.limit, overdraft);
        let taken = if counted { more.min(available) } else { 0 };
        self.balance.used += taken;
        self.balance.changed |= held + taken > 0;
        reservation.charged += held + taken;
        (held + taken, if counted { more - taken } else { 0 })
    }

    /// Ends the reservation; what it holds is available again.
    fn release(&mut self, reservation: &mut Reservation, status: ReservationStatus) {
        reservation.end(status);
        self.balance.reserved = self.balance.reserved.saturating_sub(reservation.returned);
        self.balance.changed |= reservation.returned > 0;
    }

    fn answer(
        &self,
        outcome: ReservationOutcome,
        reservation: Option<&Reservation>,
    ) -> ReservationResult {
        let reservation = reservation.cloned().map(Box::new);
        ReservationResult { outcome, units: self.balance.units(), reservation }
    }
}
