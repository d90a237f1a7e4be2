//! One sink's task.

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

use super::{
    Events, Stopping,
    pass::Pass,
    round::{self, Round},
    sink::{DeliveryError, Sink},
};
use crate::metrics::{EventNumbers, SinkNumbers};

/// Delivers events to one sink for as long as no other replica does: what it does not have, the
/// oldest first.
pub(crate) struct Publisher {
    log: Arc<dyn QuotaEventLog>,
    sink: Box<dyn Sink>,
    clock: Arc<dyn Clock>,
    numbers: SinkNumbers,
    news: watch::Receiver<()>,
    stopping: Stopping,
    lead: Option<Box<dyn Leadership>>,
    /// What the sink has and the log does not know of.
    unnoted: Vec<String>,
    pass: Pass,
    backoff: Backoff,
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// There may be more.
    GoOn,
    /// The sink has everything.
    AwaitNews,
    /// The sink has everything but what it refused, which is tried again at this time.
    TryAgain(Instant),
    /// Another replica delivers.
    Follow,
}

/// Why it does not go on.
#[derive(Debug, Error)]
enum Trouble {
    #[error(transparent)]
    Log(#[from] RepositoryError),
    #[error(transparent)]
    Sink(DeliveryError),
}

/// The most events at a time.
const BATCH: u32 = 100;

/// How often the log is asked where nobody says that there is something new.
const POLL: Duration = Duration::from_secs(1);

/// The least time between two questions that had no answer: rings may be many.
const SPACING: Duration = Duration::from_millis(50);

// === impl Publisher ===

impl Publisher {
    pub(super) fn new(
        events: &Events,
        sink: Box<dyn Sink>,
        numbers: &EventNumbers,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            log: Arc::clone(events.log()),
            clock,
            numbers: numbers.of(sink.kind()),
            sink,
            news: events.bell().listen(),
            stopping: events.stopping(),
            lead: None,
            unnoted: Vec::new(),
            pass: Pass::default(),
            backoff: Backoff::default(),
        }
    }

    /// Goes on until it is told to stop, and then finishes what it has begun.
    pub(crate) async fn run(mut self) {
        while !self.stopping.is_told() {
            match self.step().await {
                Ok(Next::GoOn) => self.recovered(),
                Ok(Next::AwaitNews) => {
                    self.recovered();
                    self.await_news(None).await;
                }
                Ok(Next::TryAgain(at)) => {
                    self.recovered();
                    self.await_news(Some(at)).await;
                }
                Ok(Next::Follow) => self.pause(POLL).await,
                Err(trouble) => {
                    let pause = self.failed(&trouble);
                    self.pause(pause).await;
                }
            }
        }
    }

    async fn step(&mut self) -> Result<Next, Trouble> {
        if !self.leads().await? {
            return Ok(Next::Follow);
        }
        self.note().await?;
        let batch = self.log.undelivered(self.sink.name(), self.pass.through(), BATCH).await?;
        if batch.is_empty() || self.pass.is_full() {
            return Ok(self.pass.again_at().map_or(Next::AwaitNews, Next::TryAgain));
        }
        let mut round = round::deliver(&*self.sink, &batch, self.pass.held_up()).await;
        self.numbers.delivered(round.delivered.len());
        self.numbers.failed(round.failures.len());
        self.unnoted = std::mem::take(&mut round.delivered);
        self.note().await?;
        if let Some((_, outage)) = round.failures.iter().find(|(_, error)| error.is_outage()) {
            return Err(Trouble::Sink(outage.clone()));
        }
        self.tell_of_refusals(&round);
        self.pass.came_through(&batch, round);
        Ok(Next::GoOn)
    }

    /// Whether this replica is the one that delivers.
    async fn leads(&mut self) -> Result<bool, RepositoryError> {
        if let Some(lead) = &mut self.lead {
            if lead.holds().await {
                return Ok(true);
            }
            self.lead = None;
        }
        self.pass.begin();
        self.lead = self.log.lead(&format!("events:{}", self.sink.name())).await?;
        Ok(self.lead.is_some())
    }

    async fn note(&mut self) -> Result<(), RepositoryError> {
        if self.unnoted.is_empty() {
            return Ok(());
        }
        let ids: Vec<&str> = self.unnoted.iter().map(String::as_str).collect();
        self.log.delivered(self.sink.name(), &ids, self.clock.now()).await?;
        self.unnoted.clear();
        Ok(())
    }

    /// Tells of the first of them: the others, and the same again, are numbers.
    fn tell_of_refusals(&self, round: &Round) {
        let is_first = self.pass.held_up().is_empty() && !self.pass.is_failing();
        if let Some((_, error)) = round.failures.first().filter(|_| is_first) {
            let sink = self.sink.shown();
            warn!(sink, %error, "{sink} refused an event: it waits, and so do later ones of its subject");
        }
    }

    fn recovered(&mut self) {
        if self.backoff.is_failing() {
            info!(sink = self.sink.shown(), "Events are delivered again to {}", self.sink.shown());
        }
        self.backoff.reset();
    }

    /// Tells of an outage once; says how long to wait.
    fn failed(&mut self, trouble: &Trouble) -> Duration {
        if !self.backoff.is_failing() {
            let sink = self.sink.shown();
            warn!(sink, %trouble, "Cannot deliver events to {sink}: they wait in the database");
        }
        self.pass.begin();
        self.backoff.next_pause()
    }

    async fn pause(&mut self, pause: Duration) {
        tokio::select! {
            () = time::sleep(pause) => {}
            () = self.stopping.told() => {}
        }
    }

    /// Waits until there may be something new, or it is time to try again what was refused.
    async fn await_news(&mut self, again_at: Option<Instant>) {
        self.pause(SPACING).await;
        let poll_at = Instant::now() + POLL;
        tokio::select! {
            // Whoever could ring is gone only when we are.
            _ = self.news.changed() => {}
            () = time::sleep_until(again_at.map_or(poll_at, |at| at.min(poll_at))) => {}
            () = self.stopping.told() => {}
        }
        if again_at.is_some_and(|at| at <= Instant::now()) {
            self.pass.begin();
        }
    }
}
