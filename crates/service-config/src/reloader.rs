//! Keeps documents in force: reads them again when somebody tells of a change, and from time to time.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use headgate::{Clock, Timestamp};
use tokio::{
    sync::Notify,
    time::{self, MissedTickBehavior},
};
use tracing::warn;

use crate::{
    document::Document,
    payload,
    repository::{ServiceConfigRepository, ServiceState},
    watcher::{Reload, Watcher},
};

/// Reloads the documents of watchers, and tells what they run on.
pub struct Reloader {
    repository: Arc<dyn ServiceConfigRepository>,
    clock: Arc<dyn Clock>,
    instance: String,
    every: Duration,
    watched: Vec<Watched>,
    stale: Notify,
}

struct Watched {
    watcher: Box<dyn Reload>,
    stale: AtomicBool,
}

/// How long to wait before listening again.
const LISTEN_AGAIN: Duration = Duration::from_secs(5);

/// When an instance that says nothing is forgotten, at the earliest.
const FORGET_AFTER: Duration = Duration::from_secs(3_600);

/// The longest name of an instance.
const MAX_INSTANCE: usize = 64;

// === impl Reloader ===

impl Reloader {
    /// How often documents are read again, unless said.
    pub const POLL: Duration = Duration::from_secs(30);

    /// Reloads from `repository`, for the process that is called `instance`.
    pub fn new(
        repository: Arc<dyn ServiceConfigRepository>,
        clock: Arc<dyn Clock>,
        instance: &str,
    ) -> Self {
        let instance = instance.chars().take(MAX_INSTANCE).collect();
        let (watched, stale) = (Vec::new(), Notify::new());
        Self { repository, clock, instance, every: Self::POLL, watched, stale }
    }

    /// Reads documents again this often, even if nobody tells of a change.
    #[must_use]
    pub fn every(self, every: Duration) -> Self {
        Self { every, ..self }
    }

    /// Keeps the document of `watcher` in force, too.
    #[must_use]
    pub fn keep<D: Document>(mut self, watcher: &Watcher<D>) -> Self {
        let watcher = Box::new(watcher.clone());
        self.watched.push(Watched { watcher, stale: AtomicBool::new(true) });
        self
    }

    /// Reads all documents once.
    pub async fn refresh(&self) {
        for watched in &self.watched {
            watched.stale.store(false, Relaxed);
            watched.watcher.reload(&*self.repository).await;
        }
    }

    /// Keeps documents in force for ever.
    pub async fn run(self) {
        tokio::join!(self.listen(), self.reload());
    }

    async fn listen(&self) {
        loop {
            let error = self.repository.listen(&|payload| self.hear(payload)).await;
            warn!(%error, "Changes of documents cannot be heard; they are polled for");
            time::sleep(LISTEN_AGAIN).await;
        }
    }

    fn hear(&self, payload: &str) {
        for watched in &self.watched {
            if payload::concerns(payload, watched.watcher.service()) {
                watched.stale.store(true, Relaxed);
            }
        }
        self.stale.notify_one();
    }

    async fn reload(&self) {
        let mut ticks = time::interval(self.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => self.refresh().await,
                () = self.stale.notified() => self.refresh_stale().await,
            }
            self.report().await;
        }
    }

    async fn refresh_stale(&self) {
        for watched in &self.watched {
            if watched.stale.swap(false, Relaxed) {
                watched.watcher.reload(&*self.repository).await;
            }
        }
    }

    /// Nobody waits for it, and a database that is away is told of elsewhere.
    async fn report(&self) {
        let now = self.clock.now();
        let states: Vec<_> = self.watched.iter().map(|watched| self.state(watched, now)).collect();
        let silence = FORGET_AFTER.max(self.every.saturating_mul(4)).as_micros() as u64;
        let forget_before = Timestamp::from_micros(now.as_micros().saturating_sub(silence));
        let _ = self.repository.report(&states, forget_before).await;
    }

    fn state(&self, watched: &Watched, seen_at: Timestamp) -> ServiceState {
        let source = watched.watcher.source();
        ServiceState {
            service: watched.watcher.service().to_owned(),
            instance: self.instance.clone(),
            version: source.version(),
            source: source.name().to_owned(),
            seen_at,
        }
    }
}

impl fmt::Debug for Reloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloader").field("instance", &self.instance).finish_non_exhaustive()
    }
}
