//! Open-loop load: requests at a steady rate, even if earlier ones are unanswered.

use std::{
    io,
    time::{Duration, Instant},
};

use super::{http::Connection, load::CONNECTIONS};
use crate::random::Random;

/// Number of distinct keys.
const SUBJECTS: usize = 100_000;

/// Results of a run.
#[derive(Debug)]
pub(super) struct Stretch {
    /// Answers per second.
    pub(super) rate: f64,
    /// Microseconds from when each request was due to its answer, sorted.
    latencies: Vec<f64>,
}

/// Pace of a connection's requests.
#[derive(Clone, Copy, Debug)]
enum Pace {
    /// Each after the response to the one before.
    Closed,
    /// One each interval.
    Open(Duration),
}

/// Writes the next request.
type Ask<'a> = &'a dyn Fn(&mut Random) -> String;

/// Runs a closed loop of keyed checks for `time`.
pub(super) fn closed(port: u16, time: Duration) -> Stretch {
    run(port, time, Pace::Closed, &keyed)
}

/// Runs an open loop of keyed checks for `time`, at `rate` requests per second.
pub(super) fn open(port: u16, time: Duration, rate: f64) -> Stretch {
    run(port, time, Pace::open(rate), &keyed)
}

/// Runs an open loop of one request for `time`, at `rate` requests per second.
pub(super) fn open_with(port: u16, time: Duration, rate: f64, request: &str) -> Stretch {
    run(port, time, Pace::open(rate), &|_| request.to_owned())
}

fn keyed(random: &mut Random) -> String {
    let subject = random.below(SUBJECTS);
    format!(
        "GET /api/v1/rate-limit/check?algorithm=TOKEN_BUCKET&key=user:{subject} HTTP/1.1\r\nhost: bench\r\n\r\n"
    )
}

fn run(port: u16, time: Duration, pace: Pace, ask: Ask<'_>) -> Stretch {
    let started = now();
    let mut connections: Vec<Paced> =
        (0..CONNECTIONS).map(|number| Paced::open(port, number, started, pace)).collect();
    let mut latencies = Vec::new();
    // One thread that never sleeps, so that wake-ups do not add to latency.
    while now() < started + time {
        for connection in &mut connections {
            latencies.extend(connection.go_on(ask).expect("every request is answered"));
        }
    }
    let rate = latencies.len() as f64 / started.elapsed().as_secs_f64();
    latencies.sort_by(f64::total_cmp);
    Stretch { rate, latencies }
}

impl Pace {
    /// All connections together send `rate` requests per second.
    fn open(rate: f64) -> Self {
        Self::Open(Duration::from_secs_f64(CONNECTIONS as f64 / rate))
    }
}

/// A connection that sends requests when they are due.
struct Paced {
    connection: Connection,
    random: Random,
    pace: Pace,
    due: Instant,
    waits: bool,
}

impl Paced {
    fn open(port: u16, number: usize, started: Instant, pace: Pace) -> Self {
        let connection = Connection::open(port).and_then(Connection::without_waiting);
        // Connections take turns within an interval.
        let due = match pace {
            Pace::Closed => started,
            Pace::Open(interval) => started + interval.mul_f64(number as f64 / CONNECTIONS as f64),
        };
        let connection = connection.expect("a connection");
        Self { connection, random: Random::new(number as u64), pace, due, waits: false }
    }

    /// Sends a due request, or reads a response; returns the latency of a complete one.
    fn go_on(&mut self, ask: Ask<'_>) -> io::Result<Option<f64>> {
        if !self.waits {
            if now() >= self.due {
                let request = ask(&mut self.random);
                self.connection.send(request.as_bytes())?;
                self.waits = true;
            }
            return Ok(None);
        }
        if !self.connection.has_answer()? {
            return Ok(None);
        }
        // Measured from the due time: a server that falls behind cannot hide it (coordinated
        // omission).
        let latency = self.due.elapsed().as_nanos() as f64 / 1_000.0;
        self.due = match self.pace {
            Pace::Closed => now(),
            Pace::Open(interval) => self.due + interval,
        };
        self.waits = false;
        Ok(Some(latency))
    }
}

#[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
fn now() -> Instant {
    Instant::now()
}

// === impl Stretch ===

impl Stretch {
    /// Latency in microseconds at `share` per mille.
    pub(super) fn per_mille(&self, share: usize) -> f64 {
        self.latencies[(self.latencies.len() * share / 1000).min(self.latencies.len() - 1)]
    }
}
