//! Reservations and refunds, case by case.

use std::time::Duration;

use super::*;
use crate::{LastUse, Refund, ReservationAction, ReservationId, ReservationStatus, SettledFor};

const TTL: Duration = Duration::from_secs(30);

impl Page {
    /// Reserves at `now`.
    fn reserve_as(
        &mut self,
        amount: u64,
        request_id: Option<&str>,
        now: Timestamp,
    ) -> ReservationResult {
        let reserve = Reserve {
            policy: self.policy.clone(),
            span: Arc::clone(&self.span),
            id: ReservationId::new(&self.span.name, now),
            amount,
            ttl: TTL,
            request_id: request_id.map(str::to_owned),
            at: now,
        };
        self.book.decide(&reserve.into(), now).result.reservation().unwrap()
    }

    fn reserve(&mut self, amount: u64) -> ReservationId {
        let result = self.reserve_as(amount, None, NOW);
        assert_eq!(result.outcome, ReservationOutcome::Done);
        result.reservation.unwrap().id
    }

    fn change(
        &mut self,
        id: &ReservationId,
        action: ReservationAction,
        now: Timestamp,
    ) -> ReservationResult {
        let policy = self.policy.clone();
        let change = ReservationChange { policy, id: id.clone(), action, at: now };
        self.book.decide(&change.into(), now).result.reservation().unwrap()
    }

    /// Returns the outcome, what is settled, returned and owed.
    fn settle(&mut self, id: &ReservationId, amount: u64) -> (ReservationOutcome, [u64; 3]) {
        self.settle_with(id, SettledFor { amount, overdraft: false })
    }

    fn settle_with(
        &mut self,
        id: &ReservationId,
        wanted: SettledFor,
    ) -> (ReservationOutcome, [u64; 3]) {
        let result = self.change(id, ReservationAction::Settle(wanted), NOW);
        let reservation = result.reservation.unwrap();
        (result.outcome, [reservation.charged, reservation.returned, reservation.owed])
    }

    /// Uses without a request id; returns the charged units, and whether to stop.
    fn spend(&mut self, id: &ReservationId, amount: u64) -> (u64, bool) {
        let action = ReservationAction::Use { amount, request_id: None };
        let result = self.change(id, action, NOW);
        assert_eq!(result.outcome, ReservationOutcome::Done);
        let LastUse { charged, stop, .. } = result.reservation.unwrap().last_use.unwrap();
        (charged, stop)
    }

    fn cancel(&mut self, id: &ReservationId) -> ReservationOutcome {
        self.change(id, ReservationAction::Cancel, NOW).outcome
    }

    fn refund(&mut self, request_id: &str) -> (RefundOutcome, u64, u64) {
        let refund = self.refund_of(request_id);
        let result = self.book.decide(&refund.into(), NOW).result.refund().unwrap();
        (result.outcome, result.refunded, result.units.used)
    }

    fn refund_of(&self, request_id: &str) -> Refund {
        let (policy, span) = (self.policy.clone(), Arc::clone(&self.span));
        Refund { policy, span, request_id: request_id.to_owned(), at: NOW }
    }

    /// Returns what an operation added, whether it lowered and refunded usage, and whether it has an
    /// event.
    fn effect_of(&mut self, operation: impl Into<Operation>) -> (Option<(u64, bool, bool)>, bool) {
        let posted = self.book.decide(&operation.into(), NOW);
        let effect = posted.effect.map(|it| (it.added, it.lowered, it.refunded));
        (effect, posted.has_event)
    }

    /// Returns used and reserved units.
    fn units(&mut self) -> (u64, u64) {
        let account = self.account();
        let balance = self.book.balance_mut(&account).unwrap();
        (balance.used, balance.reserved)
    }
}

#[test]
fn accounts_with_reserved_units_are_known() {
    let mut page = Page::new();
    assert_eq!(page.book.reserving().next(), None);
    let id = page.reserve(6);
    assert_eq!(page.book.reserving().collect::<Vec<_>>(), [&page.account()]);
    page.settle(&id, 6);
    assert_eq!(page.book.reserving().next(), None);
}

#[test]
fn reserved_units_count_against_the_limit() {
    let mut page = Page::new();
    page.reserve(6);
    assert_eq!(page.charge(5), (IncrementOutcome::Denied, 0));
    assert_eq!(page.charge(4), (IncrementOutcome::Charged, 4));
    assert_eq!(page.reserve_as(1, None, NOW).outcome, ReservationOutcome::Denied);
    assert_eq!(page.units(), (4, 6));
}

#[test]
fn settling_for_less_returns_the_rest() {
    let mut page = Page::new();
    let id = page.reserve(6);
    assert_eq!(page.settle(&id, 2), (ReservationOutcome::Done, [2, 4, 0]));
    assert_eq!(page.units(), (2, 0));
    assert_eq!(page.charge(8), (IncrementOutcome::Charged, 10));
}

#[test]
fn settling_is_charged_once_and_another_amount_is_refused() {
    let mut page = Page::new();
    let id = page.reserve(6);
    for outcome in [ReservationOutcome::Done, ReservationOutcome::Replayed] {
        assert_eq!(page.settle(&id, 5), (outcome, [5, 1, 0]));
    }
    assert_eq!(page.settle(&id, 6), (ReservationOutcome::Ended, [5, 1, 0]));
    let overdraft = SettledFor { amount: 5, overdraft: true };
    assert_eq!(page.settle_with(&id, overdraft).0, ReservationOutcome::Ended);
    assert_eq!(page.cancel(&id), ReservationOutcome::Ended);
    assert_eq!(page.units(), (5, 0));
}

#[test]
fn settling_for_more_takes_what_is_left_and_says_what_is_owed() {
    let mut page = Page::new();
    let (first, second) = (page.reserve(3), page.reserve(3));
    assert_eq!(page.settle(&first, 5), (ReservationOutcome::Done, [5, 0, 0]));
    assert!(page.events().is_empty());
    assert_eq!(page.settle(&second, 9), (ReservationOutcome::Done, [5, 0, 4]));
    assert_eq!(page.units(), (10, 0));
    let kinds: Vec<EventKind> = page.events().iter().map(|event| event.0).collect();
    assert_eq!(kinds, [EventKind::ThresholdReached, EventKind::Exceeded]);
}

#[test]
fn an_overdraft_passes_the_limit() {
    let mut page = Page::new();
    let (id, other) = (page.reserve(3), page.reserve(2));
    let wanted = SettledFor { amount: 14, overdraft: true };
    assert_eq!(page.settle_with(&id, wanted), (ReservationOutcome::Done, [14, 0, 0]));
    assert_eq!(page.units(), (14, 2));
    assert_eq!(page.charge(1), (IncrementOutcome::Denied, 14));
    assert_eq!(page.settle(&other, 3), (ReservationOutcome::Done, [2, 0, 1]));
}

#[test]
fn an_overdraft_ends_at_the_largest_number() {
    let mut page = Page::new();
    let id = page.reserve(1);
    let most = headgate::Cost::MAX;
    page.charge(9);
    let wanted = SettledFor { amount: most, overdraft: true };
    assert_eq!(page.settle_with(&id, wanted), (ReservationOutcome::Done, [most - 9, 0, 9]));
    assert_eq!(page.units(), (most, 0));
}

#[test]
fn a_cancelled_reservation_returns_what_it_holds_and_keeps_what_was_used() {
    let mut page = Page::new();
    let id = page.reserve(6);
    assert_eq!(page.spend(&id, 2), (2, false));
    assert_eq!(page.cancel(&id), ReservationOutcome::Done);
    assert_eq!(page.cancel(&id), ReservationOutcome::Replayed);
    assert_eq!(page.units(), (2, 0));
    assert_eq!(page.settle(&id, 2).0, ReservationOutcome::Ended);
    assert_eq!(page.units(), (2, 0));
}

#[test]
fn reserved_units_reach_no_threshold() {
    let mut page = Page::new();
    let id = page.reserve(10);
    assert!(page.events().is_empty(), "nothing is used yet");
    page.settle(&id, 8);
    assert_eq!(page.events(), [(EventKind::ThresholdReached, 8)]);
}

#[test]
fn a_denied_reservation_records_the_exceeded_event() {
    let mut page = Page::new();
    page.reserve(6);
    assert_eq!(page.reserve_as(5, None, NOW).outcome, ReservationOutcome::Denied);
    assert_eq!(page.events(), [(EventKind::Exceeded, 0)]);
    assert_eq!(page.reserve_as(11, None, NOW).outcome, ReservationOutcome::ExceedsLimit);
    assert_eq!(page.events().len(), 1);
}

#[test]
fn a_request_id_reserves_once() {
    let mut page = Page::new();
    let first = page.reserve_as(4, Some("a"), NOW).reservation.unwrap();
    let again = page.reserve_as(4, Some("a"), NOW);
    assert_eq!(again.outcome, ReservationOutcome::Replayed);
    assert_eq!(again.reservation, Some(first));
    assert_eq!(page.reserve_as(5, Some("a"), NOW).outcome, ReservationOutcome::Conflict);
    assert_eq!(page.charge_as(2, Some("a")), (IncrementOutcome::Charged, 2), "an own namespace");
    assert_eq!(page.units(), (2, 4));
}

#[test]
fn units_come_back_when_the_ttl_is_over() {
    let mut page = Page::new();
    let id = page.reserve(6);
    let (last, end) = (NOW.plus(29_999_999), NOW + TTL);
    let renew = || ReservationAction::Use { amount: 0, request_id: None };
    assert_eq!(page.change(&id, renew(), end).outcome, ReservationOutcome::Ended);
    let account = page.account();
    assert_eq!(page.units(), (0, 0));
    let (_, expired) = page.book.changed_reservations().next().unwrap();
    assert_eq!((expired.status, expired.returned), (ReservationStatus::Expired, 6));

    let id = page.reserve(6);
    assert_eq!(page.change(&id, renew(), last).outcome, ReservationOutcome::Done);
    assert_eq!(page.settle(&id, 6), (ReservationOutcome::Done, [6, 0, 0]));
    page.book.balance_mut(&account).unwrap().expire(3);
    assert_eq!(page.units(), (6, 0), "no more than is reserved");
}

#[test]
fn the_effect_of_an_expiry_belongs_to_the_next_operation() {
    let mut page = Page::with(|balance| (balance.used, balance.reserved) = (2, 5));
    let account = page.account();
    page.book.balance_mut(&account).unwrap().expire(5);
    let increment: Operation = page.increment(1, None).into();
    let effect = page.book.decide(&increment, NOW).effect.unwrap();
    assert!(effect.lowered && !effect.refunded);
    assert_eq!((effect.units.taken(), effect.added), (3, 0));
    let effect = page.book.decide(&increment, NOW).effect.unwrap();
    assert!(!effect.lowered);
    assert_eq!((effect.units.taken(), effect.added), (4, 1));
}

#[test]
fn an_effect_says_what_has_changed() {
    let mut page = Page::new();
    let charge = |page: &Page, amount, id| page.increment(amount, Some(id));
    assert_eq!(page.effect_of(charge(&page, 7, "a")), (Some((7, false, false)), false));
    assert_eq!(page.effect_of(charge(&page, 7, "a")), (None, false), "a repeated request");
    assert_eq!(page.effect_of(charge(&page, 6, "a")), (None, false), "a conflict");
    let threshold = page.effect_of(charge(&page, 1, "b"));
    assert_eq!(threshold, (Some((1, false, false)), true));
    let denied = page.effect_of(charge(&page, 4, "c"));
    assert_eq!(denied, (Some((0, false, false)), true), "the limit is reached");

    let id = page.reserve(1);
    let (policy, action) = (page.policy.clone(), ReservationAction::Cancel);
    let cancelled = page.effect_of(ReservationChange { policy, id, action, at: NOW });
    assert_eq!(cancelled, (Some((0, true, false)), false));
    assert_eq!(page.effect_of(page.refund_of("a")), (Some((0, true, true)), false));
}

#[test]
fn a_use_is_charged_once_per_request_id() {
    let mut page = Page::new();
    let id = page.reserve(6);
    let spend =
        |amount, key: &str| ReservationAction::Use { amount, request_id: Some(key.to_owned()) };
    let done = page.change(&id, spend(2, "a"), NOW);
    let again = page.change(&id, spend(2, "a"), NOW);
    assert_eq!(
        (done.outcome, again.outcome),
        (ReservationOutcome::Done, ReservationOutcome::Replayed)
    );
    assert_eq!(done.reservation, again.reservation);
    assert_eq!(page.change(&id, spend(3, "a"), NOW).outcome, ReservationOutcome::Conflict);
    assert_eq!(page.units(), (2, 4));
    assert_eq!(page.change(&id, spend(2, "b"), NOW).outcome, ReservationOutcome::Done);
    assert_eq!(page.units(), (4, 2));
}

#[test]
fn streams_of_single_units_stop_exactly_at_the_limit() {
    let mut page = Page::new();
    let mut streams: Vec<ReservationId> = (0..3).map(|_| page.reserve(1)).collect();
    let mut produced = 0;
    while let Some(id) = streams.pop() {
        let (charged, stop) = page.spend(&id, 1);
        produced += 1;
        assert_eq!(charged, 1);
        if !stop {
            streams.insert(0, id);
        }
    }
    assert_eq!((produced, page.units()), (10, (10, 0)));
}

#[test]
fn streams_of_chunks_pass_the_limit_by_less_than_a_chunk_in_all() {
    for chunk in 2..=5 {
        let mut page = Page::new();
        let mut streams: Vec<ReservationId> = (0..2).map(|_| page.reserve(chunk)).collect();
        let mut produced = 0;
        while let Some(id) = streams.pop() {
            let (_, stop) = page.spend(&id, chunk);
            produced += chunk;
            if !stop {
                streams.insert(0, id);
            }
        }
        assert_eq!(page.units(), (10, 0), "everything is used");
        assert!((10..10 + chunk).contains(&produced), "{produced} in chunks of {chunk}");
    }
}

#[test]
fn a_use_renews_the_ttl_only_within_the_period() {
    let mut page = Page::with(|balance| balance.period_end = NOW + Duration::from_secs(40));
    let id = page.reserve(1);
    let mut renewed = |seconds| {
        let action = ReservationAction::Use { amount: 0, request_id: None };
        let now = NOW + Duration::from_secs(seconds);
        page.change(&id, action, now).reservation.unwrap().expires_at
    };
    assert_eq!(renewed(29), NOW + Duration::from_secs(59));
    assert_eq!(renewed(41), NOW + Duration::from_secs(59));
}

#[test]
fn a_disabled_policy_reserves_and_charges_nothing() {
    let mut page = Page::with(|balance| balance.terms.as_mut().unwrap().enabled = false);
    let id = page.reserve(100);
    assert_eq!(page.units(), (0, 0));
    assert_eq!(page.spend(&id, 7), (0, false));
    assert_eq!(page.settle(&id, 50), (ReservationOutcome::Done, [0, 0, 0]));
    assert_eq!(page.units(), (0, 0));
}

#[test]
fn a_policy_that_is_disabled_later_charges_only_what_is_held() {
    let mut page = Page::new();
    let id = page.reserve(4);
    let account = page.account();
    let balance = page.book.balance_mut(&account).unwrap();
    balance.terms.as_mut().unwrap().enabled = false;
    assert_eq!(page.settle(&id, 9), (ReservationOutcome::Done, [4, 0, 0]));
}

#[test]
fn an_increment_is_refunded_once() {
    let mut page = Page::new();
    page.charge_as(4, Some("a"));
    page.charge_as(5, Some("b"));
    assert_eq!(page.refund("a"), (RefundOutcome::Refunded, 4, 5));
    assert_eq!(page.refund("a"), (RefundOutcome::Replayed, 4, 5));
    assert_eq!(page.refund("c"), (RefundOutcome::Unknown, 0, 5));
    assert_eq!(page.charge_as(4, Some("a")).0, IncrementOutcome::Refunded);
    assert_eq!(page.charge_as(3, Some("a")).0, IncrementOutcome::Conflict);
    assert_eq!(page.units(), (5, 0));
    assert_eq!(page.book.charges(ChargeWrite::Insert).count(), 2, "one write each");
}

#[test]
fn a_charge_before_a_reset_gives_nothing_back() {
    let mut page = Page::with(|balance| (balance.used, balance.resets) = (6, 1));
    let units = Units { used: 5, reserved: 0, limit: 10 };
    page.book.add_charge(page.account(), "a".to_owned(), charge(5, units));
    assert_eq!(page.refund("a"), (RefundOutcome::Refunded, 0, 6));
    assert_eq!(page.book.charges(ChargeWrite::Update).count(), 1);
    assert_eq!(page.refund("a"), (RefundOutcome::Replayed, 0, 6));
}

#[test]
fn an_unknown_reservation_changes_nothing() {
    let mut page = Page::new();
    let unknown = ReservationId::new(&page.span.name, NOW);
    let settled = SettledFor { amount: 1, overdraft: true };
    for action in [ReservationAction::Settle(settled), ReservationAction::Cancel] {
        let result = page.change(&unknown, action, NOW);
        assert_eq!((result.outcome, result.reservation), (ReservationOutcome::Unknown, None));
    }
    assert!(!page.is_changed());
}
