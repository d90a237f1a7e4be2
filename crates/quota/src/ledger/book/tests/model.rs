//! The book against a naive ledger: random operations, retries and expiries.

use std::{collections::BTreeMap, time::Duration};

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::{Refund, ReservationAction, ReservationId, ReservationStatus, SettledFor};

const LIMIT: u64 = 10;

/// A step. Reservations and request ids are chosen by a number.
#[derive(Clone, Copy, Debug)]
enum Action {
    Increment(u64, u8),
    Refund(u8),
    Reserve(u64, u64, Option<u8>),
    Use(usize, u64),
    Settle(usize, u64, bool),
    Cancel(usize),
    Pass(u64),
}

/// A ledger that keeps every entry, and sums them up for each question.
#[derive(Default)]
struct Naive {
    now: u64,
    /// Amounts of increments, by request id; 0 once refunded.
    increments: BTreeMap<u8, (u64, bool)>,
    reservations: Vec<NaiveReservation>,
}

struct NaiveReservation {
    id: ReservationId,
    asked: u64,
    held: u64,
    charged: u64,
    ttl: u64,
    expires: u64,
    request_id: Option<u8>,
    settled: Option<(u64, bool, [u64; 3])>,
    cancelled: bool,
}

fn action() -> impl Strategy<Value = Action> {
    let which = 0..6_usize;
    prop_oneof![
        4 => (1..5_u64, 0..5_u8).prop_map(|(amount, id)| Action::Increment(amount, id)),
        2 => (0..5_u8).prop_map(Action::Refund),
        6 => (1..8_u64, 1..20_u64, proptest::option::of(0..3_u8))
            .prop_map(|(amount, ttl, id)| Action::Reserve(amount, ttl, id)),
        6 => (which.clone(), 0..5_u64).prop_map(|(which, amount)| Action::Use(which, amount)),
        6 => (which.clone(), 0..12_u64, any::<bool>())
            .prop_map(|(which, amount, overdraft)| Action::Settle(which, amount, overdraft)),
        2 => which.prop_map(Action::Cancel),
        4 => (0..15_u64).prop_map(Action::Pass),
    ]
}

// === impl Naive ===

impl Naive {
    fn used(&self) -> u64 {
        let increments = self.increments.values().filter(|one| !one.1).map(|one| one.0);
        increments.sum::<u64>() + self.reservations.iter().map(|one| one.charged).sum::<u64>()
    }

    fn reserved(&self) -> u64 {
        self.reservations.iter().filter(|one| self.is_pending(one)).map(|one| one.held).sum()
    }

    fn left(&self) -> u64 {
        LIMIT.saturating_sub(self.used() + self.reserved())
    }

    fn is_pending(&self, one: &NaiveReservation) -> bool {
        one.settled.is_none() && !one.cancelled && self.now < one.expires
    }

    /// Takes up to `amount` for a reservation, from what it holds and from what is left.
    fn take(&mut self, which: usize, amount: u64, overdraft: bool) -> u64 {
        let held = amount.min(self.reservations[which].held);
        let left = if overdraft { u64::MAX } else { self.left() };
        let more = (amount - held).min(left);
        let one = &mut self.reservations[which];
        one.held -= held;
        one.charged += held + more;
        held + more
    }
}

/// Both ledgers.
struct Pair {
    page: Page,
    naive: Naive,
}

// === impl Pair ===

impl Pair {
    fn now(&self) -> Timestamp {
        NOW + Duration::from_secs(self.naive.now)
    }

    fn post(&mut self, operation: impl Into<Operation>) -> OperationResult {
        let now = self.now();
        self.page.book.decide(&operation.into(), now).result
    }

    fn step(&mut self, action: Action) {
        match action {
            Action::Increment(amount, id) => self.increment(amount, id),
            Action::Refund(id) => self.refund(id),
            Action::Reserve(amount, ttl, id) => self.reserve(amount, ttl, id),
            Action::Use(which, amount) => self.spend(which, amount),
            Action::Settle(which, amount, overdraft) => self.settle(which, amount, overdraft),
            Action::Cancel(which) => self.cancel(which),
            Action::Pass(seconds) => self.pass(seconds),
        }
        let account = self.page.account();
        let balance = self.page.book.balance_mut(&account).unwrap();
        let expected = (self.naive.used(), self.naive.reserved());
        assert_eq!((balance.used, balance.reserved), expected, "after {action:?}");
    }

    fn increment(&mut self, amount: u64, id: u8) {
        let result = self.post(self.page.increment(amount, Some(&id.to_string())));
        let expected = match self.naive.increments.get(&id) {
            Some(known) if known.0 != amount => IncrementOutcome::Conflict,
            Some((_, true)) => IncrementOutcome::Refunded,
            Some(_) => IncrementOutcome::Replayed,
            None if amount > self.naive.left() => IncrementOutcome::Denied,
            None => {
                self.naive.increments.insert(id, (amount, false));
                IncrementOutcome::Charged
            }
        };
        assert_eq!(result.increment().unwrap().outcome, expected);
    }

    fn refund(&mut self, id: u8) {
        let refund = Refund {
            policy: self.page.policy.clone(),
            span: Arc::clone(&self.page.span),
            request_id: id.to_string(),
            at: self.now(),
        };
        let result = self.post(refund).refund().unwrap();
        let expected = match self.naive.increments.get_mut(&id) {
            None => (RefundOutcome::Unknown, 0),
            Some((amount, true)) => (RefundOutcome::Replayed, *amount),
            Some((amount, refunded)) => {
                *refunded = true;
                (RefundOutcome::Refunded, *amount)
            }
        };
        assert_eq!((result.outcome, result.refunded), expected);
    }

    fn reserve(&mut self, amount: u64, ttl: u64, request_id: Option<u8>) {
        let (span, at) = (Arc::clone(&self.page.span), self.now());
        let id = ReservationId::new(&span.name, at);
        let reserve = Reserve {
            policy: self.page.policy.clone(),
            span,
            id: id.clone(),
            amount,
            ttl: Duration::from_secs(ttl),
            request_id: request_id.map(|id| id.to_string()),
            at,
        };
        let result = self.post(reserve).reservation().unwrap();
        let mut earlier = self.naive.reservations.iter();
        let earlier = earlier.find(|one| request_id.is_some() && one.request_id == request_id);
        let expected = match earlier {
            Some(earlier) if earlier.asked == amount => {
                assert_eq!(result.reservation.unwrap().id, earlier.id);
                ReservationOutcome::Replayed
            }
            Some(_) => ReservationOutcome::Conflict,
            None if amount > self.naive.left() => ReservationOutcome::Denied,
            None => {
                let expires = self.naive.now + ttl;
                self.naive.reservations.push(NaiveReservation {
                    id,
                    asked: amount,
                    held: amount,
                    charged: 0,
                    ttl,
                    expires,
                    request_id,
                    settled: None,
                    cancelled: false,
                });
                ReservationOutcome::Done
            }
        };
        assert_eq!(result.outcome, expected);
    }

    fn change(&mut self, which: usize, action: ReservationAction) -> Option<ReservationResult> {
        let id = self.naive.reservations.get(which)?.id.clone();
        let (policy, at) = (self.page.policy.clone(), self.now());
        self.post(ReservationChange { policy, id, action, at }).reservation()
    }

    fn spend(&mut self, which: usize, amount: u64) {
        let action = ReservationAction::Use { amount, request_id: None };
        let Some(result) = self.change(which, action) else { return };
        if !self.naive.is_pending(&self.naive.reservations[which]) {
            assert_eq!(result.outcome, ReservationOutcome::Ended);
            return;
        }
        let charged = self.naive.take(which, amount, false);
        let left = self.naive.left();
        let now = self.naive.now;
        let one = &mut self.naive.reservations[which];
        one.held += amount.max(1).saturating_sub(one.held).min(left);
        one.expires = one.expires.max(now + one.ttl);
        let last = result.reservation.unwrap().last_use.unwrap();
        assert_eq!(
            (last.charged, last.owed, last.stop),
            (charged, amount - charged, one.held == 0)
        );
    }

    fn settle(&mut self, which: usize, amount: u64, overdraft: bool) {
        let wanted = SettledFor { amount, overdraft };
        let Some(result) = self.change(which, ReservationAction::Settle(wanted)) else { return };
        let settled = result.reservation.unwrap();
        let numbers = [settled.charged, settled.returned, settled.owed];
        let one = &self.naive.reservations[which];
        let expected = match one.settled {
            Some((was, with, first)) if (was, with) == (amount, overdraft) => {
                assert_eq!(numbers, first, "the first answer again");
                ReservationOutcome::Replayed
            }
            _ if !self.naive.is_pending(one) => ReservationOutcome::Ended,
            _ => {
                let missing = amount.saturating_sub(one.charged);
                let owed = missing - self.naive.take(which, missing, overdraft);
                let one = &mut self.naive.reservations[which];
                assert_eq!(numbers, [one.charged, one.held, owed]);
                one.held = 0;
                one.settled = Some((amount, overdraft, numbers));
                ReservationOutcome::Done
            }
        };
        assert_eq!(result.outcome, expected);
    }

    fn cancel(&mut self, which: usize) {
        let Some(result) = self.change(which, ReservationAction::Cancel) else { return };
        let pending = self.naive.is_pending(&self.naive.reservations[which]);
        let one = &mut self.naive.reservations[which];
        let expected = match (one.cancelled, pending) {
            (true, _) => ReservationOutcome::Replayed,
            (false, false) => ReservationOutcome::Ended,
            (false, true) => {
                one.cancelled = true;
                ReservationOutcome::Done
            }
        };
        assert_eq!(result.outcome, expected);
    }

    /// Lets time pass, and expires what is due, as a ledger does before it decides.
    fn pass(&mut self, seconds: u64) {
        self.naive.now += seconds;
        let (account, now) = (self.page.account(), self.now());
        let changed: Vec<Reservation> =
            self.page.book.changed_reservations().map(|(_, one)| one.clone()).collect();
        for mut due in changed.into_iter().filter(|one| one.is_due(now)) {
            self.page.book.balance_mut(&account).unwrap().expire(due.held);
            due.end(ReservationStatus::Expired);
            self.page.book.add_reservation(account.clone(), due);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn the_book_agrees_with_a_naive_ledger(actions in vec(action(), 1..60)) {
        let end = NOW + Duration::from_secs(100_000);
        let mut pair = Pair {
            page: Page::with(|balance| balance.period_end = end),
            naive: Naive::default(),
        };
        for action in actions {
            pair.step(action);
        }
    }
}
