//! Tests of the scheduler with a manual clock.

use std::sync::Mutex;

use async_trait::async_trait;
use headgate::ManualClock;
use headgate_persistence::{Database, DatabaseConfig, QuotaDatabase};
use headgate_quota::{
    Author, ChangedPeriod, Draft, Increment, IncrementOutcome, Leadership, Listed, Operation, Page,
    Patience, PeriodUsage, PolicyChange, Posted, QuotaId, QuotaPolicy, QuotaPolicyRepository,
    Reservation, ReservationId, Reset,
};
use headgate_ratelimit::AuditFilter;
use tokio::time::Instant;

use super::*;
use crate::{KafkaConfig, ResetSchedule};

fn at(text: &str) -> Timestamp {
    let instant: jiff::Timestamp = text.parse().unwrap();
    Timestamp::from_micros(instant.as_microsecond() as u64)
}

/// Follows tokio's paused time.
struct Paused {
    began: Instant,
    at: Timestamp,
}

impl Clock for Paused {
    fn now(&self) -> Timestamp {
        self.at + self.began.elapsed()
    }
}

/// The settings that the scheduler uses, with their defaults.
#[derive(Default)]
struct Settings {
    kafka: KafkaConfig,
    schedule: ResetSchedule,
    retention: RetentionConfig,
}

impl Settings {
    fn config(&self) -> EventsConfig<'_> {
        EventsConfig {
            kafka: &self.kafka,
            webhooks: &[],
            reset_schedule: &self.schedule,
            retention: &self.retention,
            audit_retention: None,
        }
    }
}

/// A database in memory.
async fn database() -> Database {
    let config = DatabaseConfig::from_url("sqlite::memory:").unwrap();
    let database = Database::open(&config.connect_timeout(Duration::from_secs(60)));
    database.migrate().await.unwrap();
    database
}

/// An audit log with this retention.
fn audit(database: Database, kept: Option<Duration>) -> AuditRetention {
    AuditRetention { log: Arc::new(database), kept }
}

/// Records when it is asked to close periods, and fails to delete old data at first.
struct Diary {
    clock: Arc<Paused>,
    failures: Mutex<u32>,
    closings: Mutex<Vec<String>>,
    done: tokio::sync::watch::Sender<usize>,
}

impl Diary {
    fn begin(now: &str, failures: u32) -> Arc<Self> {
        Arc::new(Self {
            clock: Arc::new(Paused { began: Instant::now(), at: at(now) }),
            failures: Mutex::new(failures),
            closings: Mutex::default(),
            done: tokio::sync::watch::Sender::new(0),
        })
    }

    /// Returns the times of the first `count` runs.
    async fn closings(self: &Arc<Self>, config: EventsConfig<'_>, count: usize) -> Vec<String> {
        let log: Arc<dyn QuotaEventLog> = Arc::clone(self) as _;
        let events = Events::new(log);
        let clock: Arc<dyn Clock> = Arc::clone(&self.clock) as _;
        let empty = Database::open(&DatabaseConfig::from_url("sqlite::memory:").unwrap());
        let audit = audit(empty, None);
        let ledger = Arc::clone(self) as _;
        let scheduler =
            Scheduler::new(config, ledger, audit, &events, Vec::new(), clock, events.shutdown());
        let running = tokio::spawn(scheduler.run());
        self.done.subscribe().wait_for(|done| *done >= count).await.unwrap();
        events.shut_down();
        running.await.unwrap();
        self.closings.lock().unwrap().clone()
    }
}

#[async_trait]
impl QuotaLedger for Diary {
    async fn close_periods(&self, now: Timestamp) -> Result<u64, RepositoryError> {
        let micros = now.as_micros() as i64;
        let now = jiff::Timestamp::from_microsecond(micros).unwrap();
        self.closings.lock().unwrap().push(format!("{now:.0}"));
        Ok(0)
    }

    async fn prune(&self, _: &Retention) -> Result<Pruned, RepositoryError> {
        self.done.send_modify(|done| *done += 1);
        let mut failures = self.failures.lock().unwrap();
        if *failures > 0 {
            *failures -= 1;
            return Err(RepositoryError::Corrupt("for a test".to_owned()));
        }
        Ok(Pruned::default())
    }

    async fn commit(&self, _: &[Operation], _: Patience) -> Result<Vec<Posted>, RepositoryError> {
        unreachable!("nothing is used")
    }

    async fn reservation(
        &self,
        _: &QuotaId,
        _: &ReservationId,
    ) -> Result<Option<Reservation>, RepositoryError> {
        unreachable!("nothing is read")
    }

    async fn charged_period(
        &self,
        _: &QuotaId,
        _: &str,
    ) -> Result<Option<String>, RepositoryError> {
        unreachable!("nothing is read")
    }

    async fn release_expired(&self) -> Result<u64, RepositoryError> {
        unreachable!("nothing is reserved")
    }

    async fn usage(&self, _: &QuotaId, _: &str) -> Result<Option<PeriodUsage>, RepositoryError> {
        unreachable!("nothing is read")
    }

    async fn history(&self, _: &QuotaId, _: Page) -> Result<Listed<PeriodUsage>, RepositoryError> {
        unreachable!("nothing is read")
    }

    async fn reset(&self, _: &Reset) -> Result<u64, RepositoryError> {
        unreachable!("nothing is reset")
    }

    async fn changed_periods(
        &self,
        _: Timestamp,
        _: u32,
    ) -> Result<Vec<ChangedPeriod>, RepositoryError> {
        unreachable!("nothing is compared")
    }
}

struct Held;

#[async_trait]
impl Leadership for Held {
    async fn holds(&mut self) -> bool {
        true
    }
}

#[async_trait]
impl QuotaEventLog for Diary {
    async fn lead(&self, _: &str) -> Result<Option<Box<dyn Leadership>>, RepositoryError> {
        Ok(Some(Box::new(Held)))
    }

    async fn after(
        &self,
        _: i64,
        _: u32,
    ) -> Result<Vec<headgate_quota::LoggedEvent>, RepositoryError> {
        unreachable!("not called in these tests")
    }

    async fn before(
        &self,
        _: i64,
        _: u32,
    ) -> Result<Vec<headgate_quota::LoggedEvent>, RepositoryError> {
        unreachable!("not called in these tests")
    }

    async fn deliveries(
        &self,
        _: &[&str],
    ) -> Result<Vec<headgate_quota::Delivery>, RepositoryError> {
        unreachable!("not called in these tests")
    }

    async fn undelivered(
        &self,
        _: &str,
        _: i64,
        _: u32,
    ) -> Result<Vec<headgate_quota::LoggedEvent>, RepositoryError> {
        unreachable!("not called in these tests")
    }

    async fn delivered(&self, _: &str, _: &[&str], _: Timestamp) -> Result<(), RepositoryError> {
        unreachable!("not called in these tests")
    }

    async fn backlog(&self, _: &str) -> Result<headgate_quota::Backlog, RepositoryError> {
        unreachable!("not called in these tests")
    }
}

#[tokio::test(start_paused = true)]
async fn it_runs_at_start_and_at_each_midnight() {
    let diary = Diary::begin("2026-02-27T14:30:00Z", 0);
    let closings = diary.closings(Settings::default().config(), 4).await;
    let expected = ["27T14:30:00Z", "28T00:00:00Z"].map(|time| format!("2026-02-{time}"));
    assert_eq!(closings[..2], expected);
    assert_eq!(closings[2..4], ["2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"]);
}

#[tokio::test(start_paused = true)]
async fn it_runs_on_either_schedule() {
    let mut settings = Settings::default();
    let schedule = |text: &str| text.to_owned().try_into().unwrap();
    settings.schedule.daily = schedule("0 12 28 2 *");
    settings.schedule.monthly = schedule("30 0 0 1 * *");
    let diary = Diary::begin("2026-02-27T14:30:00Z", 0);
    let closings = diary.closings(settings.config(), 4).await;
    assert_eq!(
        closings[1..4],
        ["2026-02-28T12:00:00Z", "2026-03-01T00:00:30Z", "2026-04-01T00:00:30Z"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_is_retried_with_growing_delays() {
    let diary = Diary::begin("2026-02-27T14:30:00Z", 2);
    let closings = diary.closings(Settings::default().config(), 4).await;
    let retries = ["14:30:00", "14:30:10", "14:30:30"].map(|time| format!("2026-02-27T{time}Z"));
    assert_eq!(closings[..3], retries);
    assert_eq!(closings[3], "2026-02-28T00:00:00Z");
    // A retry is never later than ten minutes after the failure.
    let diary = Diary::begin("2026-02-27T14:00:00Z", 9);
    let closings = diary.closings(Settings::default().config(), 10).await;
    assert_eq!(
        closings[7..],
        ["2026-02-27T14:20:30Z", "2026-02-27T14:30:30Z", "2026-02-27T14:40:30Z"]
    );
}

/// A policy of 10 for tenant-abc.
async fn policy(database: &QuotaDatabase, period: &str, now: Timestamp) -> QuotaPolicy {
    let draft = Draft {
        name: period.to_owned().into(),
        subject_type: "tenant".to_owned().into(),
        subject_id: "tenant-abc".to_owned().into(),
        limit: 10.into(),
        period: period.to_owned().into(),
        ..Draft::default()
    };
    let spec = draft.validate(None).unwrap();
    let by = Author { actor: "test".to_owned(), request_id: "r".to_owned(), at: now };
    database.write(&PolicyChange::Create(spec), &by).await.unwrap()
}

async fn take(database: &QuotaDatabase, policy: &QuotaPolicy, amount: u64, at: Timestamp) -> u64 {
    let span = Arc::new(policy.spec.span(at).unwrap());
    let increment = Increment { policy: policy.id.clone(), span, amount, request_id: None, at };
    let posted = database.commit(&[increment.into()], Patience::Short).await.unwrap();
    let result = posted[0].result.increment().unwrap();
    assert_eq!(result.outcome, IncrementOutcome::Charged);
    result.units.used
}

#[tokio::test]
async fn midnight_closes_the_day_but_neither_the_month_nor_the_new_day() {
    let whole = database().await;
    let clock = Arc::new(ManualClock::new(at("2026-02-27T23:59:00Z")));
    let database = whole.quotas_at(clock.clone());
    let now = clock.now();
    let (daily, monthly) =
        (policy(&database, "daily", now).await, policy(&database, "monthly", now).await);
    take(&database, &daily, 10, now).await;
    take(&database, &monthly, 4, now).await;

    clock.set(at("2026-02-28T00:00:00Z"));
    assert_eq!(take(&database, &daily, 3, clock.now()).await, 3);
    let events = Events::new(Arc::new(database.clone()));
    let scheduler = Scheduler::new(
        Settings::default().config(),
        Arc::new(database.clone()),
        audit(whole, None),
        &events,
        Vec::new(),
        clock.clone(),
        events.shutdown(),
    );
    for _ in 0..2 {
        scheduler.run_once(clock.now()).await.unwrap();
    }
    let usage = async |policy: &QuotaPolicy, name: &str| {
        let usage = database.usage(&policy.id, name).await.unwrap().unwrap();
        (usage.used, usage.closed_at.is_some())
    };
    assert_eq!(usage(&daily, "2026-02-27").await, (10, true));
    assert_eq!(usage(&daily, "2026-02-28").await, (3, false));
    assert_eq!(usage(&monthly, "2026-02").await, (4, false));
    assert_eq!(take(&database, &daily, 1, clock.now()).await, 4);
    assert_eq!(take(&database, &monthly, 1, clock.now()).await, 5);
    assert_eq!(database.after(0, 10).await.unwrap().len(), 1, "one event only");

    clock.set(at("2026-03-01T00:00:00Z"));
    scheduler.run_once(clock.now()).await.unwrap();
    assert_eq!(usage(&monthly, "2026-02").await, (5, true));
    assert_eq!(usage(&daily, "2026-02-28").await, (4, true));

    // Only data past its retention is deleted.
    clock.set(at("2026-04-02T00:00:00Z"));
    take(&database, &monthly, 1, clock.now()).await;
    scheduler.run_once(clock.now()).await.unwrap();
    assert!(database.after(0, 10).await.unwrap().is_empty());
    assert_eq!(usage(&daily, "2026-02-27").await, (10, true));
    assert_eq!(usage(&monthly, "2026-04").await, (1, false));
}

#[tokio::test]
async fn only_old_audit_entries_are_deleted() {
    let database = database().await;
    let quotas = database.quotas();
    let old = policy(&quotas, "daily", at("2026-01-01T00:00:00Z")).await;
    let new = policy(&quotas, "monthly", at("2026-02-01T00:00:01Z")).await;
    let clock = Arc::new(ManualClock::new(at("2026-03-03T00:00:00Z")));
    let events = Events::new(Arc::new(quotas.clone()));
    let keep = async |kept: Option<Duration>| {
        let audit = audit(database.clone(), kept);
        let ledger = Arc::new(quotas.clone());
        let settings = Settings::default();
        let config = settings.config();
        let scheduler = Scheduler::new(
            config,
            ledger,
            audit,
            &events,
            Vec::new(),
            clock.clone(),
            events.shutdown(),
        );
        scheduler.run_once(clock.now()).await.unwrap();
        let page = Page::new(1, 10).unwrap();
        let entries = database.entries(&AuditFilter::default(), page).await.unwrap();
        entries.items.into_iter().map(|entry| entry.target).collect::<Vec<_>>()
    };
    let (old, new) = (old.id.to_string(), new.id.to_string());
    assert_eq!(keep(None).await, [new.clone(), old]);
    let month = Duration::from_secs(30 * 24 * 60 * 60);
    assert_eq!(keep(Some(month)).await, [new]);
    assert!(keep(Some(month / 2)).await.is_empty());
}
