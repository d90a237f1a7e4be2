use std::sync::Arc;

use headgate::Timestamp;

use super::*;
use crate::{EventKind, PeriodSpan, QuotaPeriod, Subject, SubjectType};

mod model;
mod reserving;

const NOW: Timestamp = Timestamp::from_micros(1_772_928_000_000_000);

/// A book with one policy: limit 10, alert at 80 percent.
struct Page {
    book: Book,
    policy: QuotaId,
    span: Arc<PeriodSpan>,
}

impl Page {
    fn with(change: impl FnOnce(&mut Balance)) -> Self {
        let policy = QuotaId::new(NOW);
        let span = PeriodSpan { name: "2026-03".to_owned(), start: NOW, end: NOW.plus(1_000_000) };
        let terms = Terms {
            subject: Subject { kind: SubjectType::Tenant, id: "acme".to_owned() },
            period: QuotaPeriod::Monthly,
            limit: 10,
            enabled: true,
            alert_threshold_percent: Some(80),
        };
        let mut balance = Balance::new(Some(terms), 0, span.end);
        change(&mut balance);
        let mut page = Self { book: Book::default(), policy, span: Arc::new(span) };
        page.book.add_balance(page.account(), balance);
        page
    }

    fn new() -> Self {
        Self::with(|_| {})
    }

    fn account(&self) -> Account {
        Account { policy: self.policy.clone(), period_name: self.span.name.clone() }
    }

    fn increment(&self, amount: u64, request_id: Option<&str>) -> Increment {
        Increment {
            policy: self.policy.clone(),
            span: Arc::clone(&self.span),
            amount,
            request_id: request_id.map(str::to_owned),
            at: NOW.plus(amount),
        }
    }

    fn charge(&mut self, amount: u64) -> (IncrementOutcome, u64) {
        self.charge_as(amount, None)
    }

    fn charge_as(&mut self, amount: u64, request_id: Option<&str>) -> (IncrementOutcome, u64) {
        let result = self.decide(self.increment(amount, request_id));
        (result.outcome, result.units.used)
    }

    /// Decides an increment.
    fn decide(&mut self, increment: Increment) -> IncrementResult {
        let posted = self.book.decide(&increment.into(), NOW);
        posted.result.increment().unwrap()
    }

    fn events(&self) -> Vec<(EventKind, u64)> {
        self.book.events().iter().map(|event| (event.kind, event.used)).collect()
    }

    fn is_changed(&self) -> bool {
        self.book.changed().any(|(account, _)| *account == self.account())
    }
}

/// A charge that was read from the ledger.
const fn charge(amount: u64, units: Units) -> Charge {
    Charge { amount, units, resets: 0, refunded: None, write: ChargeWrite::Unchanged }
}

#[test]
fn usage_reaches_the_limit_and_never_passes_it() {
    let mut page = Page::new();
    assert_eq!(page.charge(7), (IncrementOutcome::Charged, 7));
    assert_eq!(page.charge(4), (IncrementOutcome::Denied, 7));
    assert_eq!(page.charge(3), (IncrementOutcome::Charged, 10));
    assert_eq!(page.charge(1), (IncrementOutcome::Denied, 10));
}

#[test]
fn an_amount_above_the_limit_records_no_event() {
    let mut page = Page::new();
    assert_eq!(page.charge(11), (IncrementOutcome::ExceedsLimit, 0));
    assert!(page.events().is_empty() && !page.is_changed());
    assert_eq!(page.charge(10), (IncrementOutcome::Charged, 10));
}

#[test]
fn a_request_id_is_charged_once() {
    let mut page = Page::new();
    assert_eq!(page.charge_as(4, Some("a")), (IncrementOutcome::Charged, 4));
    assert_eq!(page.charge_as(5, Some("b")), (IncrementOutcome::Charged, 9));
    assert_eq!(
        page.charge_as(4, Some("a")),
        (IncrementOutcome::Replayed, 4),
        "the first answer again"
    );
    assert_eq!(page.charge_as(3, Some("a")), (IncrementOutcome::Conflict, 9));
    assert_eq!(page.charge(1), (IncrementOutcome::Charged, 10));
}

#[test]
fn a_denied_request_id_is_not_charged() {
    let mut page = Page::new();
    assert_eq!(page.charge(8), (IncrementOutcome::Charged, 8));
    assert_eq!(page.charge_as(3, Some("a")), (IncrementOutcome::Denied, 8));
    assert_eq!(page.book.charges(ChargeWrite::Insert).count(), 0);
    assert_eq!(page.charge_as(2, Some("a")), (IncrementOutcome::Charged, 10));
    let new = page.book.charges(ChargeWrite::Insert);
    let new: Vec<_> = new.map(|(_, id, charge)| (id, charge.units.used)).collect();
    assert_eq!(new, [("a", 10)]);
}

#[test]
fn a_charge_read_from_the_ledger_is_replayed_but_not_written_again() {
    let mut page = Page::with(|balance| balance.used = 6);
    let units = Units { used: 5, reserved: 1, limit: 9 };
    page.book.add_charge(page.account(), "a".to_owned(), charge(2, units));
    let result = page.decide(page.increment(2, Some("a")));
    assert_eq!(result, IncrementResult { outcome: IncrementOutcome::Replayed, units });
    assert_eq!(page.book.charges(ChargeWrite::Insert).count(), 0);
}

#[test]
fn a_charge_outlives_a_disabled_policy() {
    let mut page = Page::with(|balance| {
        balance.used = 2;
        balance.terms.as_mut().unwrap().enabled = false;
    });
    let units = Units { used: 2, reserved: 0, limit: 10 };
    page.book.add_charge(page.account(), "a".to_owned(), charge(2, units));
    assert_eq!(page.charge_as(2, Some("a")), (IncrementOutcome::Replayed, 2));
    assert_eq!(page.charge_as(2, Some("b")), (IncrementOutcome::Disabled, 2));
    assert!(!page.is_changed() && page.book.charges(ChargeWrite::Insert).count() == 0);
}

#[test]
fn an_unknown_or_deleted_policy_is_not_found() {
    let mut page = Page::with(|balance| {
        balance.used = 3;
        balance.terms = None;
    });
    assert_eq!(page.charge(1), (IncrementOutcome::NotFound, 3));
    let mut other = page.increment(1, None);
    other.policy = QuotaId::new(NOW);
    assert_eq!(page.decide(other).outcome, IncrementOutcome::NotFound);
    assert_eq!(page.book.accounts().collect::<Vec<_>>(), [&page.account()]);
}

#[test]
fn each_event_is_recorded_once() {
    let mut page = Page::new();
    page.charge(7);
    assert!(page.events().is_empty());
    page.charge(1);
    assert_eq!(page.events(), [(EventKind::ThresholdReached, 8)]);
    page.charge(1);
    page.charge(1);
    page.charge(1);
    assert_eq!(page.events(), [(EventKind::ThresholdReached, 8), (EventKind::Exceeded, 10)]);
    let exceeded = &page.book.events()[1];
    assert_eq!(exceeded.event_id, format!("{}:2026-03:exceeded", page.policy));
    assert_eq!((exceeded.at, exceeded.reset_at), (NOW.plus(1), page.span.end));
}

#[test]
fn a_denial_records_the_exceeded_event() {
    let mut page = Page::with(|balance| balance.used = 7);
    assert_eq!(page.charge(4), (IncrementOutcome::Denied, 7));
    assert_eq!(page.events(), [(EventKind::Exceeded, 7)], "a denial does not reach the threshold");
    assert!(page.is_changed(), "the record must be written");
}

#[test]
fn recorded_events_are_not_recorded_again() {
    let mut page = Page::with(|balance| {
        balance.used = 9;
        balance.threshold_recorded = true;
        balance.exceeded_recorded = true;
    });
    assert_eq!(page.charge(2), (IncrementOutcome::Denied, 9));
    assert!(!page.is_changed(), "a denial without event writes nothing");
    assert_eq!(page.charge(1), (IncrementOutcome::Charged, 10));
    assert!(page.is_changed());
    assert!(page.events().is_empty());
}

#[test]
fn balances_of_other_accounts_stay_as_they_are() {
    let mut page = Page::new();
    let other = Account { period_name: "2026-04".to_owned(), ..page.account() };
    page.book.add_balance(other.clone(), Balance::new(None, 5, NOW));
    page.charge(1);
    let changed: Vec<_> =
        page.book.changed().map(|(account, b)| (account.clone(), b.used)).collect();
    assert_eq!(changed, [(page.account(), 1)]);
    assert_eq!(page.book.accounts().count(), 2);
}
