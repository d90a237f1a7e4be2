//! The lease under which a place is held, and its renewal.

use std::{
    io::{self, Write as _},
    sync::mpsc::{self, RecvTimeoutError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use reqwest::{Method, header::RETRY_AFTER};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{now, signals::Target, watchdog::Watchdog};
use crate::{
    client::{Client, ClientError},
    failure::Failure,
};

/// A request for places.
pub(super) struct Request {
    /// `None` while a lease has it.
    pub(super) client: Option<Client>,
    body: Value,
}

/// The answer to a request for places.
pub(super) enum Answer {
    Held(Lease),
    Denied { client: Client, retry_after: Duration, reason: String },
}

/// A lease. Dropping it does not release it.
pub(super) struct Lease {
    client: Client,
    id: String,
    length: Duration,
    /// Time by this process's clock before which it does not end.
    ends: Instant,
    /// Time before the end that the command has to terminate.
    grace: Duration,
    /// Timeout of requests.
    timeout: Duration,
}

/// Renews a lease while a command runs.
pub(super) struct Keeper {
    stop: mpsc::Sender<()>,
    watchdog: Watchdog,
    thread: JoinHandle<()>,
}

#[derive(Deserialize)]
struct Acquired {
    lease_id: Option<String>,
    lease_ms: Option<u64>,
    #[serde(default)]
    results: Vec<Decision>,
}

#[derive(Deserialize)]
struct Decision {
    allowed: bool,
    #[serde(default)]
    reason: String,
}

/// Longest time between two attempts to renew a lease that failed.
const RETRY: Duration = Duration::from_secs(1);

/// Longest time before the end of a lease that a command has to terminate.
const MAX_GRACE: Duration = Duration::from_secs(5);

// === impl Request ===

impl Request {
    pub(super) fn new(client: Client, limits: &[(String, String)], seconds: u64) -> Self {
        let check = |(scope, identifier): &(String, String)| json!({"scope": scope, "identifier": identifier});
        let checks: Vec<Value> = limits.iter().map(check).collect();
        Self { client: Some(client), body: json!({"checks": checks, "lease_seconds": seconds}) }
    }

    pub(super) fn send(&mut self) -> Result<Answer, Failure> {
        let Some(client) = self.client.take() else { return Err(Failure::Aborted) };
        let sent = now();
        let reply = client.send(Method::POST, &["acquire"], &self.body)?;
        let Acquired { lease_id, lease_ms, results } = reply.json()?;
        if let (Some(id), Some(millis)) = (lease_id, lease_ms) {
            let length = Duration::from_millis(millis);
            let (ends, grace, timeout) = (sent + length, Duration::ZERO, client.timeout());
            return Ok(Answer::Held(Lease { client, id, length, ends, grace, timeout }));
        }
        let wait = reply.headers.get(RETRY_AFTER).and_then(|it| it.to_str().ok()?.parse().ok());
        let denied = results.into_iter().find(|result| !result.allowed);
        let reason = denied.map_or_else(|| "denied".to_owned(), |denied| denied.reason);
        Ok(Answer::Denied { client, retry_after: Duration::from_secs(wait.unwrap_or(1)), reason })
    }
}

// === impl Lease ===

impl Lease {
    /// Renews it. Returns `false` if it has ended.
    fn renew(&mut self) -> Result<bool, ClientError> {
        let sent = now();
        self.client.set_timeout(self.timeout.min(self.left()));
        let body = json!({"lease_seconds": self.length.as_secs().max(1)});
        match self.client.send(Method::POST, &["leases", &self.id, "renew"], &body) {
            Ok(_) => {
                self.ends = sent + self.length;
                Ok(true)
            }
            Err(ClientError::Refused(response)) if response.is_conflict() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Frees the place. If the server cannot be reached, it is free when the lease ends.
    pub(super) fn release(mut self) {
        self.client.set_timeout(self.timeout);
        let released = self.client.post(&["leases", &self.id, "release"], &[]);
        if let Err(error) = released {
            warn(&format!("cannot release the place, which is free when its lease ends: {error}"));
        }
    }

    /// Renews it until it is stopped, and then releases it. Reports each deadline to `renewed`;
    /// returns without a release if the place is lost.
    fn keep(mut self, stop: &mpsc::Receiver<()>, renewed: &mpsc::Sender<Instant>) {
        let mut pause = self.length / 3;
        loop {
            match stop.recv_timeout(pause) {
                Err(RecvTimeoutError::Timeout) if self.left().is_zero() => return,
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
            }
            match self.renew() {
                Ok(true) => pause = self.length / 3,
                Ok(false) => self.ends = now(),
                Err(error) => {
                    warn(&format!("cannot renew the lease: {error}"));
                    pause = RETRY.min(self.left() / 3).max(Duration::from_millis(10));
                }
            }
            if renewed.send(self.deadline()).is_err() {
                return;
            }
        }
        self.release();
    }

    /// Time at which the command is terminated without a renewal.
    fn deadline(&self) -> Instant {
        self.ends.checked_sub(self.grace).unwrap_or(self.ends)
    }

    /// Whole milliseconds until the deadline.
    fn left(&self) -> Duration {
        let left = self.deadline().saturating_duration_since(now());
        left.saturating_sub(Duration::from_nanos((left.subsec_nanos() % 1_000_000).into()))
    }
}

// === impl Keeper ===

impl Keeper {
    pub(super) fn start(mut lease: Lease, target: Target, keep_running: bool) -> Self {
        if !keep_running {
            lease.grace = (lease.length / 10).min(MAX_GRACE);
        }
        let (stop, stopped) = mpsc::channel();
        let (renewed, renewals) = mpsc::channel();
        let watchdog = Watchdog::new(target, keep_running);
        let (watching, deadline) = (watchdog.clone(), lease.deadline());
        thread::spawn(move || watching.watch(deadline, &renewals));
        let thread = thread::spawn(move || lease.keep(&stopped, &renewed));
        Self { stop, watchdog, thread }
    }

    /// Releases the place. Returns `true` if it was lost before.
    pub(super) fn stop(self) -> bool {
        let was_lost = self.watchdog.finish();
        // A lost place needs no release, and a renewal may still wait for an answer.
        if !was_lost {
            let _ = self.stop.send(());
            let _ = self.thread.join();
        }
        was_lost
    }
}

pub(super) fn warn(message: &str) {
    let _ = writeln!(io::stderr(), "headgate: {message}");
}
