use headgate::{BatchLimiter, Cost, FailMode, Key, LeasePolicy, Limit, ManualClock};
use headgate_store_memory::MemoryStore;

use super::*;
use crate::{
    Catalog, Defaults, Draft, RateLimitRule, Revision, RuleId, Scope, Snapshot,
    usecase::{Question, RefundError, check::RuleSelection},
};

const TTL: Duration = Duration::from_secs(30);

struct Fixture {
    checks: CheckRateLimit,
    catalog: Arc<Catalog>,
    clock: Arc<ManualClock>,
    defaults: Defaults,
}

impl Fixture {
    fn new(rules: Vec<RateLimitRule>) -> Self {
        Self::with_store(rules, MemoryStore::builder())
    }

    fn with_store(rules: Vec<RateLimitRule>, store: headgate_store_memory::Builder) -> Self {
        let defaults = Defaults {
            limit: Limit::token_bucket(100, Duration::from_secs(60)).unwrap(),
            window_seconds: 60,
            fail_mode: FailMode::Open,
            lease: LeasePolicy::OFF,
        };
        let clock = Arc::new(ManualClock::default());
        let catalog = Arc::new(Catalog::new(defaults.clone(), Arc::clone(&clock) as _).unwrap());
        let store = store.clock(Arc::clone(&clock)).build();
        let checks = CheckRateLimit::new(Arc::clone(&catalog), BatchLimiter::new(store));
        let fixture = Self { checks, catalog, clock, defaults };
        fixture.replace(rules);
        fixture
    }

    fn replace(&self, rules: Vec<RateLimitRule>) {
        let snapshot = Snapshot::compile(Revision(1), rules, &self.defaults, None).unwrap();
        self.catalog.replace(snapshot);
    }

    async fn reserve(&self, checks: &[(&str, u64)], request_id: Option<&str>) -> Reserved {
        self.try_reserve(checks, request_id).await.unwrap()
    }

    async fn try_reserve(
        &self,
        checks: &[(&str, u64)],
        request_id: Option<&str>,
    ) -> Result<Reserved, ReservationError> {
        let checks = checks.iter().map(|(user, cost)| user_check(user, *cost)).collect();
        self.checks.reserve(&ReservationRequest { checks, ttl: TTL, request_id }).await
    }

    /// Units left of a user.
    async fn left(&self, user: &str) -> u64 {
        let AnyQuestion::Subject(question) = user_check(user, 1) else { unreachable!() };
        self.checks.peek(&question).await.unwrap().decision.remaining
    }
}

fn user_check(user: &str, cost: u64) -> AnyQuestion<'_> {
    AnyQuestion::Subject(Question {
        scope: Scope::User,
        subject: Key::new(user).unwrap(),
        selection: RuleSelection::Matching,
        cost: Cost::new(cost).unwrap(),
    })
}

/// A fixed window, so that nothing refills within it.
fn rule(user: &str, limit: i64, window_seconds: i64, changed: u64) -> RateLimitRule {
    let draft = Draft {
        scope: "user".to_owned().into(),
        identifier_pattern: user.to_owned().into(),
        limit: limit.into(),
        window_seconds: window_seconds.into(),
        algorithm: "fixed_window".to_owned().into(),
        ..Draft::default()
    };
    let (spec, now) = (draft.validate(None).unwrap(), Timestamp::from_micros(1));
    let updated_at = Timestamp::from_micros(changed);
    RateLimitRule { id: RuleId::random(), spec, created_at: now, updated_at }
}

fn id(reserved: &Reserved) -> ReservationId {
    // As another instance reads it.
    reserved.reservation.as_ref().unwrap().id.as_str().parse().unwrap()
}

#[tokio::test]
async fn a_reservation_is_replayed_only_if_its_request_id_made_it_before() {
    // A place is held for at most the window, which is shorter than the TTL.
    let mut short = rule("place", 5, 10, 1);
    short.spec.algorithm = headgate::Algorithm::Concurrency;
    let fixture = Fixture::new(vec![short, rule("a", 100, 3600, 1)]);
    let replayed = async |checks: &[(&str, u64)], id: Option<&str>| {
        fixture.reserve(checks, id).await.reservation.unwrap().replayed
    };
    let both = [("place", 1), ("a", 1)];
    for id in [None, Some("r1"), Some("r2")] {
        assert!(!replayed(&both[..1], id).await, "{id:?}");
        assert!(!replayed(&both, id).await, "{id:?}");
        fixture.clock.advance(Duration::from_secs(1));
        assert_eq!(replayed(&both, id).await, id.is_some(), "{id:?}");
        fixture.clock.advance(TTL);
    }
}

#[tokio::test]
async fn a_reservation_is_settled_for_less_and_once() {
    let fixture = Fixture::new(vec![rule("a", 100, 3600, 1)]);
    let reserved = fixture.reserve(&[("a", 60)], None).await;
    let id = id(&reserved);
    assert_eq!(fixture.left("a").await, 40);
    for _ in 0..2 {
        let settled = fixture.checks.settle_reservation(&id, &Costs::Each(25), false).await;
        let settled = settled.unwrap()[0];
        assert_eq!((settled.settled, settled.returned, settled.owed), (25, 35, 0));
        assert_eq!(fixture.left("a").await, 75);
    }
    let other = fixture.checks.settle_reservation(&id, &Costs::Each(26), false).await;
    assert!(matches!(other, Err(ReservationError::SettledFor(25))), "{other:?}");
    let cancelled = fixture.checks.cancel_reservation(&id).await;
    assert!(matches!(cancelled, Err(ReservationError::SettledFor(25))), "{cancelled:?}");
    assert_eq!(fixture.checks.reservation(&id).await.unwrap().status, Status::Settled);
}

#[tokio::test]
async fn a_denied_reservation_takes_nothing_from_any_check() {
    let fixture = Fixture::new(vec![rule("a", 100, 3600, 1), rule("b", 10, 3600, 1)]);
    fixture.reserve(&[("b", 5)], None).await;
    let denied = fixture.reserve(&[("a", 60), ("b", 6)], None).await;
    assert!(denied.reservation.is_none());
    let allowed: Vec<bool> =
        denied.verdicts.iter().map(|verdict| verdict.as_ref().unwrap().decision.allowed).collect();
    assert_eq!(allowed, [true, false]);
    assert_eq!((fixture.left("a").await, fixture.left("b").await), (100, 5));
    let too_much = fixture.try_reserve(&[("a", 1), ("b", 11)], None).await;
    assert!(matches!(too_much, Err(ReservationError::Check(1, CheckError::Cost(_)))));
}

#[tokio::test]
async fn each_check_has_its_own_cost_and_shared_limits_their_sum() {
    let fixture = Fixture::new(vec![rule("a", 100, 3600, 1), rule("b", 100, 3600, 1)]);
    let reserved = fixture.reserve(&[("a", 10), ("b", 20), ("b", 5)], None).await;
    let id = id(&reserved);
    assert_eq!((fixture.left("a").await, fixture.left("b").await), (90, 75));
    let costs = Costs::PerCheck(vec![1, 2]);
    let wrong = fixture.checks.settle_reservation(&id, &costs, false).await;
    assert!(matches!(wrong, Err(ReservationError::Costs { checks: 3, costs: 2, .. })));
    let costs = Costs::PerCheck(vec![10, 7, 1]);
    let settled = fixture.checks.settle_reservation(&id, &costs, false).await.unwrap();
    let units: Vec<_> = settled.iter().map(|it| (it.settled, it.returned)).collect();
    assert_eq!(units, [(10, 0), (8, 17), (8, 17)]);
    assert_eq!((fixture.left("a").await, fixture.left("b").await), (90, 92));
}

#[tokio::test]
async fn a_settlement_beyond_the_limit_owes_or_overdraws() {
    let fixture = Fixture::new(vec![rule("*", 100, 3600, 1)]);
    for (user, overdraft, expected) in [("a", false, (100, 0, 50)), ("b", true, (150, 0, 0))] {
        let id = id(&fixture.reserve(&[(user, 60)], None).await);
        let settled = fixture.checks.settle_reservation(&id, &Costs::Each(150), overdraft).await;
        let settled = settled.unwrap()[0];
        assert_eq!((settled.settled, settled.returned, settled.owed), expected);
        assert_eq!(settled.debt, if overdraft { 50 } else { 0 });
        assert_eq!(fixture.left(user).await, 0);
    }
}

#[tokio::test]
async fn uses_renew_it_and_stop_at_the_limit() {
    let fixture = Fixture::new(vec![rule("a", 5, 3600, 1)]);
    let id = id(&fixture.reserve(&[("a", 1)], None).await);
    let mut produced = 0;
    loop {
        fixture.clock.advance(TTL / 2);
        produced += 1;
        let used =
            fixture.checks.use_reservation(&id, &Charge::Cost(Costs::Each(1))).await.unwrap();
        assert_eq!(used.expires_at, fixture.catalog.now() + TTL);
        if used.held == Some(0) {
            break;
        }
    }
    assert_eq!(produced, 5);
    let state = fixture.checks.reservation(&id).await.unwrap();
    assert_eq!((state.status, state.checks[0].held), (Status::Pending, 0));
    assert_eq!(state.expires_at, Some(fixture.catalog.now() + TTL));
    // What was used stays charged.
    fixture.checks.cancel_reservation(&id).await.unwrap();
    assert_eq!(fixture.left("a").await, 0);
}

#[tokio::test]
async fn a_total_is_charged_once() {
    let fixture = Fixture::new(vec![rule("*", 100, 3600, 1)]);
    let id = id(&fixture.reserve(&[("a", 10), ("b", 1)], None).await);
    let charge = async |a, b| {
        let total = Charge::Total(Costs::PerCheck(vec![a, b]));
        fixture.checks.use_reservation(&id, &total).await.map(|used| used.held)
    };
    // Repeated, overtaken by a later one, and partly lost.
    for (a, charged) in [(10, 10), (10, 10), (30, 30), (20, 30), (0, 30), (30, 30)] {
        fixture.clock.advance(TTL / 2);
        let held = if charged == 10 { 10 } else { 20 };
        assert_eq!(charge(a, 0).await.unwrap(), Some(if a == 0 { 1 } else { held }), "{a}");
        assert_eq!(fixture.left("a").await, 100 - charged - held, "{a}");
    }
    // What was spent since the last use counts towards the total.
    let cost = Charge::Cost(Costs::PerCheck(vec![5, 1]));
    fixture.checks.use_reservation(&id, &cost).await.unwrap();
    charge(35, 1).await.unwrap();
    let wrong = Charge::Total(Costs::PerCheck(vec![1]));
    let wrong = fixture.checks.use_reservation(&id, &wrong).await.unwrap_err();
    let message = "total must be one number, or a list of 2: one for each check; got 1";
    assert_eq!(wrong.to_string(), message);
    let costs = Costs::PerCheck(vec![35, 1]);
    fixture.checks.settle_reservation(&id, &costs, false).await.unwrap();
    assert_eq!((fixture.left("a").await, fixture.left("b").await), (65, 99));
    assert!(matches!(charge(36, 1).await, Err(ReservationError::SettledFor(35))));
    assert_eq!(fixture.left("a").await, 65);
}

#[tokio::test]
async fn an_expired_or_cancelled_reservation_has_ended() {
    let fixture = Fixture::new(vec![rule("a", 100, 3600, 1)]);
    let expired = id(&fixture.reserve(&[("a", 60)], None).await);
    fixture.clock.advance(TTL);
    assert_eq!(fixture.left("a").await, 100);
    let cancelled = id(&fixture.reserve(&[("a", 60)], None).await);
    fixture.checks.cancel_reservation(&cancelled).await.unwrap();
    for id in [expired, cancelled] {
        let errors = [
            fixture.checks.settle_reservation(&id, &Costs::Each(1), true).await.err(),
            fixture.checks.use_reservation(&id, &Charge::Cost(Costs::Each(1))).await.err(),
            fixture.checks.cancel_reservation(&id).await.err(),
        ];
        for error in errors {
            assert!(matches!(error, Some(ReservationError::Ended)), "{error:?}");
        }
        assert_eq!(fixture.checks.reservation(&id).await.unwrap().status, Status::Ended);
    }
    assert_eq!(fixture.left("a").await, 100);
}

#[tokio::test]
async fn a_request_id_reserves_once() {
    let fixture = Fixture::new(vec![rule("a", 100, 3600, 1)]);
    let first = fixture.reserve(&[("a", 60)], Some("r1")).await;
    fixture.clock.advance(Duration::from_secs(1));
    let again = fixture.reserve(&[("a", 60)], Some("r1")).await;
    let (first, again) = (first.reservation.unwrap(), again.reservation.unwrap());
    assert_eq!((first.replayed, again.replayed), (false, true));
    assert_eq!((&first.id, first.expires_at), (&again.id, again.expires_at));
    assert_eq!(fixture.left("a").await, 40);

    let other = fixture.try_reserve(&[("a", 10)], Some("r1")).await;
    assert!(matches!(other, Err(ReservationError::RequestIdReused(_))), "{other:?}");
    fixture.checks.settle_reservation(&first.id, &Costs::Each(60), false).await.unwrap();
    let settled = fixture.try_reserve(&[("a", 60)], Some("r1")).await;
    assert!(matches!(settled, Err(ReservationError::RequestIdReused(_))), "{settled:?}");
    assert_eq!(fixture.left("a").await, 40);
    assert!(fixture.reserve(&[("a", 40)], Some("r2")).await.reservation.is_some());
}

#[tokio::test]
async fn rules_may_change_before_it_is_settled() {
    let before = rule("a", 100, 3600, 1);
    let fixture = Fixture::new(vec![before.clone()]);
    let raised = id(&fixture.reserve(&[("a", 60)], None).await);
    let moved = id(&fixture.reserve(&[("a", 30)], None).await);
    let mut after = rule("a", 200, 3600, 2);
    after.id = before.id;
    fixture.replace(vec![after]);
    // 90 of 200 are reserved: 100 more are available.
    let settled = fixture.checks.settle_reservation(&raised, &Costs::Each(160), false).await;
    assert_eq!(settled.unwrap()[0].owed, 0);
    // The window changes, and with it the key: the old one is settled under its old limit.
    fixture.replace(vec![rule("a", 50, 60, 3)]);
    let settled = fixture.checks.settle_reservation(&moved, &Costs::Each(10), false).await;
    let settled = settled.unwrap()[0];
    assert_eq!((settled.settled, settled.returned), (10, 20));
    assert_eq!(fixture.left("a").await, 50);
}

/// An id is easily made up, and one of another installation is valid, too: its limit must not apply
/// here.
#[tokio::test]
async fn an_id_of_another_installation_lifts_no_limit() {
    let bucket = |limit: i64| {
        let mut rule = rule("a", limit, 60, 1);
        rule.spec.algorithm = headgate::Algorithm::TokenBucket;
        rule
    };
    let other = Fixture::new(vec![bucket(i64::from(u32::MAX))]);
    let foreign = id(&other.reserve(&[("a", 1)], None).await);
    let fixture = Fixture::new(vec![bucket(100)]);
    fixture.reserve(&[("a", 100)], None).await;
    let checks = &fixture.checks;
    assert!(matches!(checks.cancel_reservation(&foreign).await, Err(ReservationError::Ended)));
    let used = checks.use_reservation(&foreign, &Charge::Cost(Costs::Each(1))).await;
    assert!(matches!(used, Err(ReservationError::Ended)), "{used:?}");
    let settled = checks.settle_reservation(&foreign, &Costs::Each(0), false).await;
    assert!(matches!(settled, Err(ReservationError::Ended)), "{settled:?}");
    fixture.clock.advance(Duration::from_millis(599));
    assert_eq!(fixture.left("a").await, 0);
    fixture.clock.advance(Duration::from_millis(1));
    assert_eq!(fixture.left("a").await, 1);
}

#[tokio::test]
async fn ttls_and_numbers_of_checks_are_bounded() {
    let fixture = Fixture::new(vec![]);
    for ttl in [0, 999, 3_600_001] {
        let (ttl, checks) = (Duration::from_millis(ttl), vec![user_check("a", 1)]);
        let request = ReservationRequest { checks, ttl, request_id: None };
        let error = fixture.checks.reserve(&request).await.unwrap_err();
        assert_eq!(error.to_string(), "ttl_seconds must be between 1 and 3600");
    }
    for count in [0, 17] {
        let checks = vec![user_check("a", 1); count];
        let request = ReservationRequest { checks, ttl: TTL, request_id: None };
        let error = fixture.checks.reserve(&request).await.unwrap_err();
        assert_eq!(error.to_string(), "checks must have 1 to 16 items");
    }
}

#[tokio::test]
async fn a_check_with_a_request_id_is_refunded_once() {
    let fixture = Fixture::new(vec![rule("a", 100, 3600, 1)]);
    let (checks, check) = (&fixture.checks, user_check("a", 60));
    let verdict = checks.check_refundable(&check, "r1").await.unwrap().unwrap();
    assert_eq!((verdict.decision.allowed, verdict.decision.remaining), (true, 40));
    let reused = checks.check_refundable(&check, "r1").await;
    assert!(matches!(reused, Err(RefundError::Reused(_))), "{reused:?}");
    assert_eq!(fixture.left("a").await, 40);

    for (other, id) in [("a", "r2"), ("b", "r1")] {
        let unknown = checks.refund(&user_check(other, 60), id).await;
        assert!(matches!(unknown, Err(RefundError::Unknown(_))), "{unknown:?}");
    }
    let other_cost = checks.refund(&user_check("a", 59), "r1").await;
    assert!(matches!(other_cost, Err(RefundError::Unknown(_))), "{other_cost:?}");
    for replayed in [false, true] {
        let refunded = checks.refund(&check, "r1").await.unwrap();
        assert_eq!((refunded.replayed, refunded.decision.unwrap().remaining), (replayed, 100));
    }
    let reused = checks.check_refundable(&check, "r1").await;
    assert!(matches!(reused, Err(RefundError::Reused(_))), "{reused:?}");
}

#[tokio::test]
async fn a_refund_that_fails_can_be_made_later() {
    let fixture = Fixture::new(vec![rule("a", 100, 3600, 1)]);
    let (checks, check) = (&fixture.checks, user_check("a", 60));
    checks.check_refundable(&check, "r1").await.unwrap();
    // A limit below the cost.
    fixture.replace(vec![rule("a", 50, 3600, 2)]);
    let failed = checks.refund(&check, "r1").await;
    assert!(matches!(failed, Err(RefundError::Check(CheckError::Cost(_)))), "{failed:?}");
    fixture.replace(vec![rule("a", 100, 3600, 3)]);
    let refunded = checks.refund(&check, "r1").await.unwrap();
    assert_eq!((refunded.replayed, refunded.decision.unwrap().remaining), (false, 100));
}

#[tokio::test]
async fn a_denied_check_leaves_its_request_id_free() {
    let fixture = Fixture::new(vec![rule("a", 100, 3600, 1)]);
    let checks = &fixture.checks;
    checks.check_refundable(&user_check("a", 60), "r1").await.unwrap();
    let denied = checks.check_refundable(&user_check("a", 41), "r2").await.unwrap().unwrap();
    assert!(!denied.decision.allowed);
    let unknown = checks.refund(&user_check("a", 41), "r2").await;
    assert!(matches!(unknown, Err(RefundError::Unknown(_))), "{unknown:?}");
    checks.refund(&user_check("a", 60), "r1").await.unwrap();
    let admitted = checks.check_refundable(&user_check("a", 41), "r2").await.unwrap().unwrap();
    assert!(admitted.decision.allowed);
}

#[tokio::test]
async fn a_refund_returns_nothing_twice_to_a_bucket_that_has_refilled() {
    // The default rule: 100 tokens a minute.
    let fixture = Fixture::new(vec![]);
    let checks = &fixture.checks;
    checks.check_refundable(&user_check("a", 50), "r1").await.unwrap();
    fixture.clock.advance(Duration::from_secs(18));
    // 30 have refilled.
    let refunded = checks.refund(&user_check("a", 50), "r1").await.unwrap();
    assert_eq!(refunded.decision.unwrap().remaining, 100);
    checks.check_refundable(&user_check("a", 50), "r2").await.unwrap();
    fixture.clock.advance(Duration::from_secs(30));
    checks.check_refundable(&user_check("a", 100), "r3").await.unwrap();
    // All 50 have refilled, and were taken again: nothing is left to return.
    let refunded = checks.refund(&user_check("a", 50), "r2").await.unwrap();
    assert_eq!(refunded.decision.unwrap().remaining, 0);
    fixture.clock.advance(Duration::from_secs(31));
    let late = checks.refund(&user_check("a", 50), "r2").await;
    assert!(matches!(late, Err(RefundError::Unknown(_))), "{late:?}");
}

/// A sketch of the fewest cells, which marks would fill.
#[tokio::test]
async fn nothing_is_refunded_that_was_not_taken_while_the_store_is_full() {
    let store = MemoryStore::builder().capacity(4).overflow_bytes(1);
    // Marks of the same life, which would share cells.
    let rules = vec![rule("a", 100, 3600, 1), rule("u*", 100, 3600, 1)];
    let fixture = Fixture::with_store(rules, store);
    let checks = &fixture.checks;
    let taken = checks.check_refundable(&user_check("a", 100), "first").await.unwrap().unwrap();
    assert!(taken.decision.allowed);
    for i in 0..500 {
        let (user, id) = (format!("u{i}"), format!("r{i}"));
        let checked = checks.check_refundable(&user_check(&user, 1), &id).await;
        assert!(checked.is_ok(), "{i}: {checked:?}");
    }
    for i in 0..200 {
        let (check, id) = (user_check("a", 100), format!("unused{i}"));
        // Denied, and therefore not taken.
        let denied = checks.check_refundable(&check, &id).await.unwrap().unwrap();
        assert!(!denied.decision.allowed, "{i}");
        let unknown = checks.refund(&check, &id).await;
        assert!(matches!(unknown, Err(RefundError::Unknown(_))), "{i}: {unknown:?}");
    }
    assert_eq!(fixture.left("a").await, 0);
    let refunded = checks.refund(&user_check("a", 100), "first").await.unwrap();
    assert!(!refunded.replayed, "its mark had a slot");
    assert_eq!(fixture.left("a").await, 100);
}
