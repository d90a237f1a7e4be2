//! Texts for many readers.

use std::{
    sync::{
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

use futures_util::{future::join_all, poll};
use headgate::SystemClock;
use prometheus::{core::Desc, proto::MetricFamily};
use tokio::{pin, sync::mpsc, task, time::timeout};

use super::*;

const PATIENCE: Duration = Duration::from_secs(120);

/// A collector that takes as long as a test wants.
struct Slow {
    began: mpsc::UnboundedSender<()>,
    go_on: Mutex<Receiver<()>>,
}

impl Collector for Slow {
    fn desc(&self) -> Vec<&Desc> {
        Vec::new()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.began.send(()).unwrap();
        self.go_on.lock().unwrap().recv_timeout(PATIENCE).expect("the test goes on");
        Vec::new()
    }
}

fn metrics() -> Arc<Metrics> {
    let app = AppConfig { name: "gate".to_owned(), ..AppConfig::default() };
    Arc::new(Metrics::new(&app, Arc::new(SystemClock::new())).unwrap())
}

/// Metrics whose rendering signals that it began, and ends at a signal.
fn slow_metrics() -> (Arc<Metrics>, mpsc::UnboundedReceiver<()>, Sender<()>) {
    let metrics = metrics();
    let ((began, beginnings), (end, go_on)) = (mpsc::unbounded_channel(), channel());
    let slow = Slow { began, go_on: Mutex::new(go_on) };
    metrics.registry().register(Box::new(slow)).unwrap();
    (metrics, beginnings, end)
}

#[tokio::test]
async fn requests_at_the_same_time_share_one_measurement_and_one_text() {
    let (metrics, mut beginnings, end) = slow_metrics();
    let measured = &AtomicUsize::new(0);
    let ask = || metrics.text(Format::Prometheus, async { _ = measured.fetch_add(1, Relaxed) });
    let first = ask();
    pin!(first);
    assert!(poll!(&mut first).is_pending());
    timeout(PATIENCE, beginnings.recv()).await.expect("it renders");
    // They drop their texts at once, as readers whose sockets have room for all of it.
    let others = join_all((0..1_000).map(async |_| ask().await.map(drop)));
    pin!(others);
    assert!(poll!(&mut others).is_pending());
    for _ in 0..1_001 {
        end.send(()).unwrap();
    }
    drop(first.await.unwrap());
    assert!(others.await.iter().all(Result::is_ok));
    assert_eq!(measured.load(Relaxed), 2);
}

#[tokio::test]
async fn a_text_after_an_event_counts_it() {
    let metrics = metrics();
    let events = IntGauge::new("events", "Events.").unwrap();
    let events = registered(metrics.registry(), events).unwrap();
    for number in 1..=20 {
        events.set(number);
        for format in Format::ALL {
            let text = metrics.text(format, async {}).await.unwrap();
            let line = format!("events{{service=\"gate\"}} {number}\n");
            assert!(String::from_utf8_lossy(&text).contains(&line), "{text:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn readers_in_turn_wait_between_long_texts_and_get_new_ones() {
    let metrics = metrics();
    let events = IntGauge::new("events", "x".repeat(1024 * 1024)).unwrap();
    let events = registered(metrics.registry(), events).unwrap();
    let began_at = Instant::now();
    for number in 1..=10 {
        events.set(number);
        let text = metrics.text(Format::Prometheus, async {}).await.unwrap();
        let line = format!("events{{service=\"gate\"}} {number}\n");
        assert!(String::from_utf8_lossy(&text).contains(&line), "{number}");
    }
    // The first does not wait.
    assert!(began_at.elapsed() >= 9 * Duration::from_millis(64), "{:?}", began_at.elapsed());
}

/// On a runtime with one thread.
#[tokio::test]
async fn other_tasks_run_while_a_text_is_rendered() {
    let (metrics, mut beginnings, end) = slow_metrics();
    let asked = Arc::clone(&metrics);
    let text = tokio::spawn(async move { asked.text(Format::Prometheus, async {}).await });
    timeout(PATIENCE, beginnings.recv()).await.expect("it renders");
    task::yield_now().await;
    assert!(!text.is_finished());
    end.send(()).unwrap();
    text.await.unwrap().unwrap();
}

#[tokio::test]
async fn clients_that_do_not_wait_start_no_second_rendering() {
    let (metrics, mut beginnings, end) = slow_metrics();
    let measured = &AtomicUsize::new(0);
    let ask = || metrics.text(Format::Prometheus, async { _ = measured.fetch_add(1, Relaxed) });
    let mut gone = Box::pin(ask());
    assert!(poll!(&mut gone).is_pending());
    timeout(PATIENCE, beginnings.recv()).await.expect("it renders");
    drop(gone);
    for _ in 0..10 {
        assert!(poll!(&mut Box::pin(ask())).is_pending());
    }
    assert_eq!(measured.load(Relaxed), 1, "they wait for the end of the first");
    end.send(()).unwrap();
    // If it does not get the text that is being dropped.
    end.send(()).unwrap();
    ask().await.unwrap();
}
