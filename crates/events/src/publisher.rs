//! The task of one sink.

use std::{sync::Arc, time::Duration};

use headgate::Clock;
use headgate_quota::{Leadership, QuotaEventLog, RepositoryError};
use headgate_resilience::Backoff;
use thiserror::Error;
use tokio::{
    sync::watch,
    time::{self, Instant},
};
use tracing::{info, warn};

use crate::{
    EventMetrics, Events, Shutdown,
    batch::{self, BatchOutcome},
    metrics::SinkMetrics,
    pass::LogPass,
    scheduler::before,
    sink::{DeliveryError, EventSink},
};

/// Delivers events to one sink, the oldest first, while this replica is the leader.
pub(crate) struct EventPublisher {
    log: Arc<dyn QuotaEventLog>,
    sink: Box<dyn EventSink>,
    clock: Arc<dyn Clock>,
    /// Age at which an event that the sink keeps rejecting is given up.
    kept: Duration,
    metrics: SinkMetrics,
    new_events: watch::Receiver<()>,
    shutdown: Shutdown,
    leadership: Option<Box<dyn Leadership>>,
    /// Ids of delivered events that are not recorded in the log yet.
    unrecorded: Vec<String>,
    pass: LogPass,
    backoff: Backoff,
}

/// Action after a step.
#[derive(Debug, PartialEq, Eq)]
enum NextStep {
    /// Go on: there may be more events.
    Continue,
    /// Wait for new events: everything is delivered.
    Wait,
    /// Wait for new events, and retry rejected ones at this time.
    RetryAt(Instant),
    /// Wait to become the leader: another replica delivers.
    Follow,
}

/// A failed step.
#[derive(Debug, Error)]
enum PublishError {
    #[error(transparent)]
    Log(#[from] RepositoryError),
    #[error(transparent)]
    Sink(DeliveryError),
}

/// Events in a batch.
const BATCH_SIZE: u32 = 100;

/// Interval between two reads of the log without a notification.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Minimum interval between two reads that find nothing, however many notifications there are.
const MIN_INTERVAL: Duration = Duration::from_millis(50);

// === impl EventPublisher ===

impl EventPublisher {
    pub(crate) fn new(
        events: &Events,
        sink: Box<dyn EventSink>,
        metrics: &EventMetrics,
        clock: Arc<dyn Clock>,
        kept: Duration,
        shutdown: Shutdown,
    ) -> Self {
        Self {
            log: Arc::clone(events.log()),
            clock,
            kept,
            metrics: metrics.sink(sink.kind()),
            sink,
            new_events: events.new_events().subscribe(),
            shutdown,
            leadership: None,
            unrecorded: Vec::new(),
            pass: LogPass::default(),
            backoff: Backoff::default(),
        }
    }

    /// Runs until shutdown, and then finishes its current batch.
    pub(crate) async fn run(mut self) {
        while !self.shutdown.is_signalled() {
            match self.step().await {
                Ok(NextStep::Continue) => self.recovered(),
                Ok(NextStep::Wait) => {
                    self.recovered();
                    self.wait(None).await;
                }
                Ok(NextStep::RetryAt(at)) => {
                    self.recovered();
                    self.wait(Some(at)).await;
                }
                Ok(NextStep::Follow) => self.pause(POLL_INTERVAL).await,
                Err(error) => {
                    let pause = self.failed(&error);
                    self.pause(pause).await;
                }
            }
        }
    }

    async fn step(&mut self) -> Result<NextStep, PublishError> {
        if !self.is_leader().await? {
            return Ok(NextStep::Follow);
        }
        self.record().await?;
        let batch = self.log.undelivered(self.sink.name(), self.pass.through(), BATCH_SIZE).await?;
        if batch.is_empty() || self.pass.is_full() {
            return Ok(self.pass.retry_at().map_or(NextStep::Wait, NextStep::RetryAt));
        }
        let keep_from = before(self.clock.now(), self.kept);
        let mut outcome = batch::deliver(&*self.sink, &batch, &self.pass, keep_from).await;
        self.count(&outcome);
        self.unrecorded = std::mem::take(&mut outcome.delivered);
        // An event that is given up counts as delivered, so that it can be deleted.
        self.unrecorded.append(&mut outcome.given_up);
        self.record().await?;
        if let Some(error) = outcome.outage() {
            return Err(PublishError::Sink(error.clone()));
        }
        self.warn_of_rejections(&outcome);
        self.pass.advance(&batch, &outcome);
        Ok(NextStep::Continue)
    }

    /// Tries to become the leader; returns true if this replica is the leader.
    async fn is_leader(&mut self) -> Result<bool, RepositoryError> {
        if let Some(leadership) = &mut self.leadership {
            if leadership.holds().await {
                return Ok(true);
            }
            self.leadership = None;
        }
        // Another replica may deliver what was blocked here.
        self.pass = LogPass::default();
        self.leadership = self.log.lead(&format!("events:{}", self.sink.name())).await?;
        Ok(self.leadership.is_some())
    }

    async fn record(&mut self) -> Result<(), RepositoryError> {
        if self.unrecorded.is_empty() {
            return Ok(());
        }
        let ids: Vec<&str> = self.unrecorded.iter().map(String::as_str).collect();
        self.log.delivered(self.sink.name(), &ids, self.clock.now()).await?;
        self.unrecorded.clear();
        Ok(())
    }

    fn count(&self, outcome: &BatchOutcome) {
        let BatchOutcome { delivered, given_up, failures, .. } = outcome;
        self.metrics.delivered(delivered.len());
        self.metrics.failed(failures.len() + given_up.len());
        self.metrics.given_up(given_up.len());
        if !given_up.is_empty() {
            let (sink, events) = (self.sink.display_name(), given_up.len());
            warn!(sink, events, "gave up old events that {sink} keeps rejecting");
        }
    }

    /// Logs the first rejection; the metrics count the others.
    fn warn_of_rejections(&self, outcome: &BatchOutcome) {
        let is_first = !self.pass.is_failing();
        if let Some((_, error)) = outcome.failures.first().filter(|_| is_first) {
            let sink = self.sink.display_name();
            warn!(sink, %error, "{sink} rejected an event; retrying it before later events of its subject");
        }
    }

    fn recovered(&mut self) {
        if self.backoff.is_failing() {
            info!(
                sink = self.sink.display_name(),
                "delivering events to {} again",
                self.sink.display_name()
            );
        }
        self.backoff.reset();
    }

    /// Logs the first failure of an outage, and returns the backoff.
    fn failed(&mut self, error: &PublishError) -> Duration {
        if !self.backoff.is_failing() {
            let sink = self.sink.display_name();
            warn!(sink, %error, "failed to deliver events to {sink}; keeping them in the database");
        }
        self.pass.restart();
        self.backoff.next_pause()
    }

    async fn pause(&mut self, pause: Duration) {
        tokio::select! {
            () = time::sleep(pause) => {}
            () = self.shutdown.signalled() => {}
        }
    }

    /// Waits for new events, or for `retry_at`.
    async fn wait(&mut self, retry_at: Option<Instant>) {
        self.pause(MIN_INTERVAL).await;
        let poll_at = Instant::now() + POLL_INTERVAL;
        tokio::select! {
            // The sender lives as long as this task.
            _ = self.new_events.changed() => {}
            () = time::sleep_until(retry_at.map_or(poll_at, |at| at.min(poll_at))) => {}
            () = self.shutdown.signalled() => {}
        }
        if retry_at.is_some_and(|at| at <= Instant::now()) {
            self.pass.restart();
        }
    }
}
