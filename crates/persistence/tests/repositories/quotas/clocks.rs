//! Servers with wrong clocks: the database's clock decides.

use std::{sync::Arc, time::Duration};

use headgate::{Clock, ManualClock, SystemClock, Timestamp};
use headgate_quota::{Draft, Page, QuotaLedger, QuotaPolicy, usecase::IncrementUsage};
use headgate_store_memory::MemoryStore;
use headgate_testkit::require;

use super::setup::{Replica, draft};
use crate::support::{Home, run};

/// Clock skew in hours: into other days and other months.
const HOURS: [i64; 4] = [26, -26, 24 * 40, -24 * 40];

fn shifted(now: Timestamp, hours: i64) -> Timestamp {
    Timestamp::from_micros(now.as_micros().wrapping_add_signed(hours * 3_600_000_000))
}

/// A server on a machine with this clock and shared counters.
fn server(home: &Home, store: &Arc<MemoryStore>, clock: &Arc<ManualClock>) -> Replica {
    let kept = home.open().quotas_on(Arc::clone(clock) as Arc<dyn Clock>);
    let store = Arc::clone(store);
    Replica::on_machine(home.open(), kept, Arc::clone(clock), store, IncrementUsage::CAPACITY)
}

/// A daily quota of 2 in a time zone in which no day ends during the test.
fn daily(now: Timestamp) -> Draft {
    let hour = now.as_micros() / 3_600_000_000 % 24;
    let zone = if (6..18).contains(&hour) { "UTC" } else { "Asia/Tokyo" };
    Draft { time_zone: zone.to_owned().into(), ..draft(2) }
}

/// Creates a policy with 1 of 2 units used; returns the day, too.
async fn half_used(right: &Replica) -> (QuotaPolicy, String) {
    let policy = right.create(daily(right.clock.now())).await;
    let done = right.increment(&policy.id, 1).await;
    (policy, done.usage.span.name)
}

/// Asserts that nothing was charged or recorded in another period.
async fn assert_only(replica: &Replica, policy: &QuotaPolicy, day: &str, used: u64) {
    let history = replica.kept.history(&policy.id, Page::DEFAULT).await.unwrap().items;
    let periods: Vec<_> = history.iter().map(|one| (&*one.span.name, one.used)).collect();
    assert_eq!(periods, [(day, used)]);
    assert_eq!(history[0].closed_at, None);
}

#[test]
fn a_server_with_a_wrong_clock_counts_in_the_databases_day() {
    let home = require!(Home::postgres());
    run(async {
        home.migrated().await;
        let store = Arc::new(MemoryStore::default());
        let now = SystemClock::new().now();
        let right = server(&home, &store, &Arc::new(ManualClock::new(now)));
        for hours in HOURS {
            let (policy, day) = half_used(&right).await;
            let wrong = server(&home, &store, &Arc::new(ManualClock::new(shifted(now, hours))));
            assert_eq!(wrong.usage.usage(&policy.id).await.unwrap().span.name, day);
            let done = wrong.increment(&policy.id, 1).await;
            assert_eq!((done.allowed, done.usage.used, &*done.usage.span.name), (true, 2, &*day));
            assert!(!wrong.increment(&policy.id, 1).await.allowed, "{hours} hours off");
            assert!(!right.increment(&policy.id, 1).await.allowed);
            assert_eq!(wrong.house.close_periods().await.unwrap(), 0);
            assert_only(&right, &policy, &day, 2).await;
            let skew = wrong.kept.clock().skew() / 3_600_000_000;
            assert!(skew.abs_diff(hours) <= 1, "{skew}");
            right.policies.delete(&policy.id, &right.author()).await.unwrap();
        }
    });
}

#[test]
fn a_clock_that_jumps_does_not_change_the_period() {
    let home = require!(Home::postgres());
    run(async {
        home.migrated().await;
        let store = Arc::new(MemoryStore::default());
        let now = SystemClock::new().now();
        let right = server(&home, &store, &Arc::new(ManualClock::new(now)));
        for hours in HOURS {
            let (policy, day) = half_used(&right).await;
            let clock = Arc::new(ManualClock::new(now));
            let jumping = server(&home, &store, &clock);
            jumping.quotas.catalog().refresh().await.unwrap();
            // Its monotonic clock jumps, too, as after a suspend: only a commit detects it.
            clock.set(shifted(now, hours));
            let done = jumping.try_increment(&policy.id, 1, "req_1").await.unwrap();
            assert_eq!((done.usage.used, &*done.usage.span.name), (2, &*day), "{hours} hours off");
            clock.set(shifted(now, hours * 2));
            assert!(!jumping.increment(&policy.id, 1).await.allowed);
            clock.set(shifted(now, -hours));
            let done = jumping.resets.reset(&policy.id, "again", right.author()).await.unwrap();
            assert_eq!(done.before, 2);
            clock.set(shifted(now, hours));
            assert_eq!(jumping.house.close_periods().await.unwrap(), 0);
            assert_only(&right, &policy, &day, 0).await;
            right.policies.delete(&policy.id, &right.author()).await.unwrap();
        }
    });
}

#[test]
fn current_increments_are_committed_beside_out_of_period_ones() {
    let home = require!(Home::postgres());
    run(async {
        let database = home.migrated().await;
        let store = Arc::new(MemoryStore::default());
        let now = SystemClock::new().now();
        let right = server(&home, &store, &Arc::new(ManualClock::new(now)));
        let (policy, day) = half_used(&right).await;
        let increment = |hours: i64, late: Duration| {
            let mut increment = headgate_quota::Increment {
                policy: policy.id.clone(),
                span: Arc::new(policy.spec.span(shifted(now, hours)).unwrap()),
                amount: 1,
                request_id: None,
                at: now,
            };
            // A period that ended this long ago.
            if !late.is_zero() {
                let span = Arc::make_mut(&mut increment.span);
                let end = now.as_micros() - late.as_micros() as u64;
                (span.name, span.end) = ("2026-01-01".to_owned(), Timestamp::from_micros(end));
                span.start = Timestamp::from_micros(end - 86_400_000_000);
            }
            headgate_quota::Operation::from(increment)
        };
        let batch = [
            increment(26, Duration::ZERO),
            increment(0, Duration::ZERO),
            increment(0, Duration::from_secs(1)),
            increment(-26, Duration::ZERO),
            increment(0, Duration::from_secs(3_600)),
        ];
        let entries =
            database.quotas().commit(&batch, headgate_quota::Patience::Short).await.unwrap();
        let results = entries.iter().map(|posted| posted.result.increment().unwrap());
        let verdicts: Vec<String> =
            results.map(|one| format!("{:?} {}", one.outcome, one.units.used)).collect();
        let expected =
            ["OutOfPeriod 0", "Charged 2", "Charged 1", "OutOfPeriod 0", "OutOfPeriod 0"];
        assert_eq!(verdicts, expected);
        let kept = right.kept.usage(&policy.id, &day).await.unwrap().unwrap();
        assert_eq!(kept.used, 2);
    });
}
