//! Keeps documents up to date: reads them again on notifications, and from time to time.

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
    kinds::Kinds,
    payload,
    repository::{ServiceConfigRepository, ServiceState},
    watcher::{Reload, Watcher},
};

/// Reloads the documents of watchers, registers their kinds, and reports their states.
pub struct Reloader {
    repository: Arc<dyn ServiceConfigRepository>,
    clock: Arc<dyn Clock>,
    instance: String,
    every: Duration,
    kinds: Kinds,
    registered: AtomicBool,
    watched: Vec<Watched>,
    stale: Notify,
}

struct Watched {
    watcher: Box<dyn Reload>,
    stale: AtomicBool,
}

/// Pause before listening again after a failure.
const LISTEN_AGAIN: Duration = Duration::from_secs(5);

/// Minimum time after which the report of a silent instance is removed.
const FORGET_AFTER: Duration = Duration::from_secs(3_600);

/// Maximum length of an instance's name.
const MAX_INSTANCE: usize = 64;

// === impl Reloader ===

impl Reloader {
    /// Default interval at which documents are read again.
    pub const POLL: Duration = Duration::from_secs(30);

    /// Reloads from `repository`, for the process named `instance`.
    pub fn new(
        repository: Arc<dyn ServiceConfigRepository>,
        clock: Arc<dyn Clock>,
        instance: &str,
    ) -> Self {
        let instance = instance.chars().take(MAX_INSTANCE).collect();
        Self {
            repository,
            clock,
            instance,
            every: Self::POLL,
            kinds: Kinds::new(),
            registered: AtomicBool::new(false),
            watched: Vec::new(),
            stale: Notify::new(),
        }
    }

    /// Reads documents again at this interval, even without a notification.
    #[must_use]
    pub fn every(self, every: Duration) -> Self {
        Self { every, ..self }
    }

    /// Adds a watcher, and its kind of document to those that are registered.
    #[must_use]
    pub fn watch<D: Document>(mut self, watcher: &Watcher<D>) -> Self {
        self.kinds = self.kinds.with::<D>();
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

    /// Keeps documents up to date; never returns.
    pub async fn run(self) {
        tokio::join!(self.listen(), self.reload());
    }

    async fn listen(&self) {
        loop {
            let error = self.repository.listen(&|payload| self.notified(payload)).await;
            warn!(%error, "cannot listen for changed documents; polling instead");
            time::sleep(LISTEN_AGAIN).await;
        }
    }

    fn notified(&self, payload: &str) {
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
            self.register().await;
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

    /// Registers the kinds of documents, once, so that other programs can validate them.
    async fn register(&self) {
        if self.registered.load(Relaxed) {
            return;
        }
        match self.repository.register(&self.kinds, self.clock.now()).await {
            Ok(()) => self.registered.store(true, Relaxed),
            Err(error) => warn!(%error, "failed to register the kinds of documents; will retry"),
        }
    }

    /// Reports the version that each service runs. Failures are left to the next report: an
    /// unavailable database is logged elsewhere.
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
