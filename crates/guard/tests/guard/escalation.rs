use std::{sync::Arc, time::Duration};

use headgate::{Clock, ManualClock};
use headgate_guard::{
    Denied, Escalation, EscalationError, Guard, Penalties, Policy, Reason, Routes,
};

use crate::support::{Server, by_address, by_clock, header};

const SECOND: Duration = Duration::from_secs(1);

fn escalation() -> Escalation {
    Escalation::new(10 * SECOND, 60 * SECOND, 100 * SECOND).unwrap()
}

/// A guard with a limit of 60 a minute and penalties.
fn guard() -> (Arc<ManualClock>, Guard) {
    guard_with(escalation())
}

fn guard_with(escalation: Escalation) -> (Arc<ManualClock>, Guard) {
    let (clock, backend) = by_clock();
    let policy = Policy::new([by_address("public", 60)]).unwrap().escalation(escalation);
    let guard = Guard::builder(policy, Routes::all("public")).backend(backend).build().unwrap();
    (clock, guard)
}

async fn ask(guard: &Guard, address: &str) -> Result<(), Denied> {
    let taken = guard.check("public", address.parse().unwrap()).await;
    taken.map(|_| ()).map_err(|error| *error.denied().unwrap())
}

/// Sends requests until one is denied.
async fn offend(guard: &Guard) -> Denied {
    for _ in 0..200 {
        if let Err(denied) = ask(guard, "192.0.2.1").await {
            return denied;
        }
    }
    panic!("nobody was denied");
}

#[tokio::test]
async fn penalties_double_up_to_a_maximum() {
    let (clock, guard) = guard();
    for expected in [10, 20, 40, 60, 60] {
        let denied = offend(&guard).await;
        assert_eq!(denied.reason, Reason::Address);
        assert_eq!(denied.retry_after, expected * SECOND);
        assert_eq!(denied.decision.unwrap().retry_after, expected * SECOND);
        // A request during the penalty neither shortens nor extends it.
        clock.advance((expected * SECOND).checked_sub(Duration::from_micros(1)).unwrap());
        let denied = ask(&guard, "192.0.2.1").await.unwrap_err();
        assert_eq!(denied.reason, Reason::Penalty);
        assert_eq!((denied.retry_after, denied.retry_after_secs()), (Duration::from_micros(1), 1));
        clock.advance(Duration::from_micros(1));
        ask(&guard, "192.0.2.1").await.expect("who waits as long as told is admitted");
    }
    ask(&guard, "192.0.2.2").await.expect("nobody else is punished");
}

#[tokio::test]
async fn a_denial_during_a_penalty_has_limit_headers() {
    let (clock, guard) = guard();
    let server = Server::behind(&guard).await;
    while server.status("/").await == 200 {}
    clock.advance(3 * SECOND);
    let denied = server.get("/", &[]).await;
    let reset = clock.now().as_micros() / 1_000_000 + 7;
    let expected = [
        ("retry-after", "7"),
        ("x-ratelimit-limit", "60"),
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", &reset.to_string()),
        ("ratelimit-policy", r#""public";q=60;w=60"#),
        ("ratelimit", r#""public";r=0;t=7"#),
    ];
    for (name, value) in expected {
        assert_eq!(header(&denied, name), value, "{name}");
    }
}

#[tokio::test]
async fn all_headers_include_the_penalty() {
    // Longer than the limit takes to refill.
    let (clock, guard) = guard_with(Escalation::new(90 * SECOND, 90 * SECOND, SECOND).unwrap());
    let server = Server::behind(&guard).await;
    let mut denied = server.get("/", &[]).await;
    while denied.status() == 200 {
        denied = server.get("/", &[]).await;
    }
    let reset = clock.now().as_micros() / 1_000_000 + 90;
    let expected = [
        ("retry-after", "90"),
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", &reset.to_string()),
        ("ratelimit", r#""public";r=0;t=90"#),
    ];
    for (name, value) in expected {
        assert_eq!(header(&denied, name), value, "{name}");
    }
}

#[tokio::test]
async fn offences_are_forgiven_one_by_one() {
    let (clock, guard) = guard();
    for expected in [10, 20, 40] {
        assert_eq!(offend(&guard).await.retry_after, expected * SECOND);
        clock.advance(expected * SECOND);
    }
    // Two of three are forgiven: the next is the second.
    clock.advance(200 * SECOND);
    assert_eq!(offend(&guard).await.retry_after, 20 * SECOND);
    clock.advance(20 * SECOND + 1000 * SECOND);
    assert_eq!(offend(&guard).await.retry_after, 10 * SECOND);
}

#[tokio::test]
async fn a_penalty_never_ends_before_the_limit_admits() {
    let (_, backend) = by_clock();
    let policy = Policy::new([by_address("public", 1)]).unwrap().escalation(escalation());
    let guard = Guard::builder(policy, Routes::all("public")).backend(backend).build().unwrap();
    ask(&guard, "192.0.2.1").await.unwrap();
    assert_eq!(ask(&guard, "192.0.2.1").await.unwrap_err().retry_after, 60 * SECOND);
}

#[test]
fn penalties_are_bounded_and_never_evicted_early() {
    let clock = Arc::new(ManualClock::default());
    let penalties = Penalties::new(160, Arc::clone(&clock) as Arc<dyn Clock>);
    assert_eq!(penalties.offend("first", SECOND, &escalation()), 10 * SECOND);
    for other in 0..100_000 {
        penalties.offend(other, SECOND, &escalation());
    }
    assert!(penalties.len() <= 160, "{}", penalties.len());
    assert_eq!(penalties.remaining("first"), Some(10 * SECOND));
    assert_eq!(penalties.offend("late", SECOND, &escalation()), SECOND, "the limit's own wait");
    // Forgiven offenders are evicted.
    clock.advance(111 * SECOND);
    assert_eq!(penalties.offend("late", SECOND, &escalation()), 10 * SECOND);
}

#[test]
fn invalid_escalations_are_rejected() {
    let error = Escalation::new(2 * SECOND, SECOND, SECOND).unwrap_err();
    assert_eq!(error, EscalationError::Range { first: 2 * SECOND, max: SECOND });
    assert!(Escalation::new(Duration::ZERO, SECOND, SECOND).is_err());
    assert!(Escalation::new(SECOND, SECOND, Duration::ZERO).is_err());
}
