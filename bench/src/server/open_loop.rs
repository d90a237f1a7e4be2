//! Requests that come when they come: at a steady rate, whether or not earlier ones were answered.

use std::{
    io, thread,
    time::{Duration, Instant},
};

use super::{http::Connection, load::CONNECTIONS};
use crate::random::Random;

/// Keys come from this many.
const SUBJECTS: usize = 100_000;

/// What a stretch of requests came to.
#[derive(Debug)]
pub(super) struct Stretch {
    /// Answers per second.
    pub(super) rate: f64,
    /// Microseconds from when each request was due to its answer, sorted.
    latencies: Vec<f64>,
}

/// When a connection's requests are due.
#[derive(Clone, Copy, Debug)]
enum Pace {
    /// As soon as the one before is answered.
    Closed,
    /// One each interval.
    Open(Duration),
}

/// Asks for a while as fast as it is answered.
pub(super) fn closed(port: u16, time: Duration) -> Stretch {
    run(port, time, Pace::Closed)
}

/// Asks for a while at `rate` requests a second.
pub(super) fn open(port: u16, time: Duration, rate: f64) -> Stretch {
    run(port, time, Pace::Open(Duration::from_secs_f64(CONNECTIONS as f64 / rate)))
}

fn run(port: u16, time: Duration, pace: Pace) -> Stretch {
    let started = now();
    let ask = |number| thread::spawn(move || connection(port, number, started, time, pace));
    let threads: Vec<_> = (0..CONNECTIONS).map(ask).collect();
    let mut latencies = Vec::new();
    for thread in threads {
        latencies.extend(thread.join().expect("no panic").expect("every request is answered"));
    }
    let rate = latencies.len() as f64 / started.elapsed().as_secs_f64();
    latencies.sort_by(f64::total_cmp);
    Stretch { rate, latencies }
}

fn connection(
    port: u16,
    number: usize,
    started: Instant,
    time: Duration,
    pace: Pace,
) -> io::Result<Vec<f64>> {
    let mut connection = Connection::open(port)?;
    let mut random = Random::new(number as u64);
    let mut latencies = Vec::new();
    // Connections take turns within an interval.
    let mut due = match pace {
        Pace::Closed => started,
        Pace::Open(interval) => started + interval.mul_f64(number as f64 / CONNECTIONS as f64),
    };
    while due < started + time {
        wait_until(due);
        let subject = random.below(SUBJECTS);
        let request = format!(
            "GET /api/v1/rate-limit/check?algorithm=TOKEN_BUCKET&key=user:{subject} HTTP/1.1\r\nhost: bench\r\n\r\n"
        );
        connection.ask(request.as_bytes())?;
        // From when it was due: a server that falls behind cannot hide it by being asked later.
        latencies.push(due.elapsed().as_nanos() as f64 / 1_000.0);
        due = match pace {
            Pace::Closed => now(),
            Pace::Open(interval) => due + interval,
        };
    }
    Ok(latencies)
}

#[expect(clippy::disallowed_methods, reason = "requests come at set times")]
fn wait_until(due: Instant) {
    thread::sleep(due.saturating_duration_since(now()));
}

#[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
fn now() -> Instant {
    Instant::now()
}

// === impl Stretch ===

impl Stretch {
    /// Microseconds that so many of a thousand took at most.
    pub(super) fn per_mille(&self, share: usize) -> f64 {
        self.latencies[(self.latencies.len() * share / 1000).min(self.latencies.len() - 1)]
    }
}
