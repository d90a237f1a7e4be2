//! A publisher on a log in memory, with a sink that rejects some subjects, and fails on some.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use headgate::{Clock, ManualClock, Timestamp};
use headgate_quota::{
    Backlog, Delivery, Leadership, LoggedEvent, QuotaEvent, QuotaEventLog, RepositoryError,
};
use prometheus::Registry;
use tokio::time::{self, Instant};

use super::{DeliveryError, EventSink, event, subject};
use crate::{EventMetrics, Events, KafkaConfig, publisher::EventPublisher};

/// All events, and those recorded as delivered.
#[derive(Default)]
struct Log {
    events: Mutex<Vec<QuotaEvent>>,
    delivered: Mutex<HashSet<String>>,
}

struct Held;

/// Records accepted events and their times; rejects events of subjects that begin with `bad`, and
/// fails on those of subjects that begin with `ill`.
#[derive(Clone, Default)]
struct Picky {
    taken: Arc<Mutex<Vec<(String, Instant)>>>,
    forgiving: Arc<AtomicBool>,
    failures: Arc<AtomicUsize>,
    rejections: Arc<AtomicUsize>,
}

/// Retention of events.
const KEPT: Duration = Duration::from_secs(24 * 3600);

struct Running {
    log: Arc<Log>,
    events: Events,
    sink: Picky,
    clock: Arc<ManualClock>,
    registry: Registry,
    began: Instant,
}

// === impl Log ===

#[async_trait]
impl QuotaEventLog for Log {
    async fn after(&self, seq: i64, max: u32) -> Result<Vec<LoggedEvent>, RepositoryError> {
        let events = self.events.lock().unwrap();
        let logged = |(place, event): (usize, &QuotaEvent)| LoggedEvent {
            seq: place as i64 + 1,
            event: event.clone(),
        };
        let all = events.iter().enumerate().map(logged);
        Ok(all.filter(|logged| logged.seq > seq).take(max as usize).collect())
    }

    async fn before(&self, _: i64, _: u32) -> Result<Vec<LoggedEvent>, RepositoryError> {
        unreachable!("not called in these tests")
    }

    async fn deliveries(&self, _: &[&str]) -> Result<Vec<Delivery>, RepositoryError> {
        unreachable!("not called in these tests")
    }

    async fn undelivered(
        &self,
        _: &str,
        seq: i64,
        max: u32,
    ) -> Result<Vec<LoggedEvent>, RepositoryError> {
        let (events, delivered) = (self.events.lock().unwrap(), self.delivered.lock().unwrap());
        let later = (seq + 1..).zip(events.iter().skip(seq as usize));
        let undelivered = later.filter(|(_, event)| !delivered.contains(&event.event_id));
        let logged = undelivered.map(|(seq, event)| LoggedEvent { seq, event: event.clone() });
        Ok(logged.take(max as usize).collect())
    }

    async fn delivered(&self, _: &str, ids: &[&str], _: Timestamp) -> Result<(), RepositoryError> {
        self.delivered.lock().unwrap().extend(ids.iter().map(|id| (*id).to_owned()));
        Ok(())
    }

    async fn backlog(&self, _: &str) -> Result<Backlog, RepositoryError> {
        unreachable!("not called in these tests")
    }

    async fn lead(&self, _: &str) -> Result<Option<Box<dyn Leadership>>, RepositoryError> {
        Ok(Some(Box::new(Held)))
    }
}

#[async_trait]
impl Leadership for Held {
    async fn holds(&mut self) -> bool {
        true
    }
}

// === impl Picky ===

#[async_trait]
impl EventSink for Picky {
    fn name(&self) -> &'static str {
        "picky"
    }

    fn kind(&self) -> &'static str {
        "webhook"
    }

    fn display_name(&self) -> &'static str {
        "picky"
    }

    fn concurrency(&self) -> usize {
        4
    }

    async fn deliver(&self, event: &QuotaEvent) -> Result<(), DeliveryError> {
        if event.subject.id.starts_with("bad") && !self.forgiving.load(Relaxed) {
            self.rejections.fetch_add(1, Relaxed);
            return Err(DeliveryError::Rejected("no".to_owned()));
        }
        if event.subject.id.starts_with("ill") && !self.forgiving.load(Relaxed) {
            self.failures.fetch_add(1, Relaxed);
            return Err(DeliveryError::Failed("status 500".to_owned()));
        }
        self.taken.lock().unwrap().push((event.event_id.clone(), Instant::now()));
        Ok(())
    }
}

// === impl Running ===

impl Running {
    fn start(events: impl IntoIterator<Item = QuotaEvent>) -> Self {
        let log = Arc::new(Log::default());
        log.events.lock().unwrap().extend(events);
        let events = Events::new(Arc::clone(&log) as Arc<dyn QuotaEventLog>);
        let sink = Picky::default();
        let registry = Registry::new();
        let metrics = EventMetrics::new(&registry, &KafkaConfig::default()).unwrap();
        let clock = Arc::new(ManualClock::new(Timestamp::from_micros(1)));
        let publisher = EventPublisher::new(
            &events,
            Box::new(sink.clone()),
            &metrics,
            Arc::clone(&clock) as Arc<dyn Clock>,
            KEPT,
            events.shutdown(),
        );
        tokio::spawn(publisher.run());
        Self { log, events, sink, clock, registry, began: Instant::now() }
    }

    fn happens(&self, event: QuotaEvent) {
        self.log.events.lock().unwrap().push(event);
        self.events.new_events().notify();
    }

    /// Waits until the sink accepted this event; returns the time since the start.
    async fn taken(&self, id: &str) -> Duration {
        loop {
            let found = self.sink.taken.lock().unwrap().iter().find(|taken| taken.0 == id).cloned();
            if let Some((_, at)) = found {
                return at - self.began;
            }
            time::sleep(Duration::from_millis(10)).await;
        }
    }
}

fn of(name: &str, number: usize) -> QuotaEvent {
    event(&format!("{name}{number}"), subject(name))
}

#[tokio::test(start_paused = true)]
async fn rejected_events_do_not_delay_others() {
    let bad = (0..250).map(|number| of(&format!("bad{number}-"), 1));
    let running = Running::start(bad.chain([of("good", 1)]));
    assert!(running.taken("good1").await < Duration::from_millis(100));
    // Rejected events are retried every half minute by then; new ones do not wait for that.
    time::sleep(Duration::from_secs(300)).await;
    let before = running.began.elapsed();
    running.happens(of("good", 2));
    assert!(running.taken("good2").await < before + Duration::from_millis(200));
}

#[tokio::test(start_paused = true)]
async fn retried_events_keep_their_order() {
    let running = Running::start([of("bad", 1), of("good", 1)]);
    running.taken("good1").await;
    // It arrives while the first one is blocked, and must not overtake it.
    running.happens(of("bad", 2));
    time::sleep(Duration::from_secs(120)).await;
    running.sink.forgiving.store(true, Relaxed);
    let freed = running.began.elapsed();
    assert!(running.taken("bad2").await <= freed + Duration::from_secs(31));
    let taken = running.sink.taken.lock().unwrap();
    let order: Vec<&str> = taken.iter().map(|taken| &*taken.0).collect();
    assert_eq!(order, ["good1", "bad1", "bad2"]);
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_fails_on_one_subject_gets_the_events_of_others() {
    let good = (0..300).map(|number| of(&format!("good{number}-"), 1));
    let running = Running::start([of("ill", 1)].into_iter().chain(good));
    assert!(running.taken("good299-1").await < Duration::from_millis(100));
    // The failed event is alone in the log when later ones arrive.
    time::sleep(Duration::from_secs(300)).await;
    let before = running.began.elapsed();
    running.happens(of("ill", 2));
    running.happens(of("good", 2));
    assert!(running.taken("good2").await < before + Duration::from_millis(200));
    running.sink.forgiving.store(true, Relaxed);
    running.taken("ill2").await;
    let taken = running.sink.taken.lock().unwrap();
    let ill: Vec<&str> =
        taken.iter().map(|taken| &*taken.0).filter(|id| id.starts_with("ill")).collect();
    assert_eq!(ill, ["ill1", "ill2"]);
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_fails_on_every_subject_is_asked_rarely() {
    let running = Running::start((0..300).map(|number| of(&format!("ill{number}-"), 1)));
    time::sleep(Duration::from_secs(300)).await;
    let failures = running.sink.failures.load(Relaxed);
    assert!((5..200).contains(&failures), "{failures}");
    running.sink.forgiving.store(true, Relaxed);
    let freed = running.began.elapsed();
    assert!(running.taken("ill299-1").await <= freed + Duration::from_secs(31));
}

#[tokio::test(start_paused = true)]
async fn rejected_events_of_very_many_subjects_do_not_stop_others_and_are_repeated_rarely() {
    const BAD: usize = 12_000;
    let bad = (0..BAD).map(|number| of(&format!("bad{number}-"), 1));
    let running = Running::start(bad.chain([of("good", 1)]));
    time::timeout(Duration::from_secs(60), running.taken("good1")).await.expect("it is delivered");
    // Each is repeated ten times at first, and then every three minutes.
    time::sleep(Duration::from_secs(1200)).await;
    let before = running.sink.rejections.load(Relaxed);
    time::sleep(Duration::from_secs(600)).await;
    let repeated = running.sink.rejections.load(Relaxed) - before;
    assert!((BAD..5 * BAD).contains(&repeated), "{repeated}");
    let before = running.began.elapsed();
    running.happens(of("good", 2));
    assert!(running.taken("good2").await < before + Duration::from_millis(200));
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_rejected_for_too_long_is_given_up() {
    let running = Running::start([of("bad", 1), of("ill", 1), of("good", 1)]);
    running.taken("good1").await;
    time::sleep(Duration::from_secs(600)).await;
    let is_recorded = |id: &str| running.log.delivered.lock().unwrap().contains(id);
    assert!(!is_recorded("bad1"), "it is not old");
    running.clock.advance(KEPT + Duration::from_secs(1));
    time::sleep(Duration::from_secs(60)).await;
    assert!(is_recorded("bad1"));
    assert!(!is_recorded("ill1"), "a receiver that fails may recover");
    let given_up = || {
        let families = running.registry.gather();
        let family = families.iter().find(|it| it.name() == "headgate_events_given_up_total");
        let of_sinks = family.unwrap().get_metric().iter();
        let counts = of_sinks.map(|metric| metric.get_counter().get_value());
        counts.sum::<f64>() as u64
    };
    assert_eq!(given_up(), 1);
    let rejections = running.sink.rejections.load(Relaxed);
    time::sleep(Duration::from_secs(600)).await;
    assert_eq!(running.sink.rejections.load(Relaxed), rejections, "it is not repeated");

    // The next event is another one, and gets its time.
    let new = QuotaEvent { at: running.clock.now(), ..of("bad", 2) };
    running.happens(new);
    time::sleep(Duration::from_secs(600)).await;
    assert!(!is_recorded("bad2"));
    running.sink.forgiving.store(true, Relaxed);
    running.taken("bad2").await;
}
