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

use super::{now, signals::Target};
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
}

/// Renews a lease while a command runs.
pub(super) struct Keeper {
    stop: mpsc::Sender<()>,
    thread: JoinHandle<bool>,
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
            return Ok(Answer::Held(Lease { client, id, length, ends: sent + length }));
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
    pub(super) fn release(self) {
        let released = self.client.post(&["leases", &self.id, "release"], &[]);
        if let Err(error) = released {
            warn(&format!("cannot release the place, which is free when its lease ends: {error}"));
        }
    }

    /// Renews it until it is stopped. Returns `true` if it was lost before.
    fn keep(mut self, stop: &mpsc::Receiver<()>, target: Target, keep_running: bool) -> bool {
        let mut pause = self.length / 3;
        let mut is_lost = false;
        loop {
            match stop.recv_timeout(pause) {
                Err(RecvTimeoutError::Timeout) if is_lost => continue,
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
            }
            match self.renew() {
                Ok(true) => pause = self.length / 3,
                Ok(false) => is_lost = true,
                Err(error) if now() < self.ends => {
                    warn(&format!("cannot renew the lease, trying again: {error}"));
                    let left = self.ends.saturating_duration_since(now());
                    pause = RETRY.min(left / 3).max(Duration::from_millis(10));
                }
                Err(error) => {
                    warn(&format!("cannot renew the lease: {error}"));
                    is_lost = true;
                }
            }
            if is_lost && keep_running {
                warn("the place is lost; the command goes on without it");
            } else if is_lost {
                warn("the place is lost: terminating the command");
                target.terminate();
            }
        }
        if !is_lost {
            self.release();
        }
        is_lost
    }
}

// === impl Keeper ===

impl Keeper {
    pub(super) fn start(lease: Lease, target: Target, keep_running: bool) -> Self {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::spawn(move || lease.keep(&stopped, target, keep_running));
        Self { stop, thread }
    }

    /// Releases the place. Returns `true` if it was lost before.
    pub(super) fn stop(self) -> bool {
        let _ = self.stop.send(());
        self.thread.join().unwrap_or(false)
    }
}

fn warn(message: &str) {
    let _ = writeln!(io::stderr(), "headgate: {message}");
}
