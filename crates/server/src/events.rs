//! Tells others what happened to quotas.
//!
//! | module | what it owns |
//! |---|---|
//! | [`publisher`] | one sink's task: takes the lead, reads, delivers, notes |
//! | [`pass`] | how far a publisher has come, and who is held up |
//! | [`round`] | one batch: subjects side by side, each subject's events in order |
//! | [`sink`], [`webhook`], `kafka` | where events go |
//! | [`backlog`] | what sinks do not have yet, as numbers |
//! | [`streams`] | places for clients that follow events |
//!
//! Events are in the database, written with the usage that caused them. Nothing is kept in memory
//! but the batch at hand, and no request waits for any of this.

mod backlog;
#[cfg(feature = "kafka")]
mod kafka;
mod pass;
mod publisher;
mod round;
mod sink;
mod streams;
#[cfg(test)]
mod tests;
mod webhook;

use std::sync::{Arc, OnceLock};

use headgate::Clock;
use headgate_config::Problem;
use headgate_quota::{QuotaEventLog, QuotaLedger};
use headgate_ratelimit::AuditLog;
use tokio::{sync::watch, task::JoinSet};

pub(crate) use self::streams::{NoPlace, Place, Streams};
use self::{backlog::Backlogs, publisher::Publisher, sink::Sink, webhook::Webhook};
use crate::{
    config::Config,
    metrics::EventNumbers,
    scheduler::{AuditRetention, Scheduler},
};

/// The events, and how those who wait for them are woken. Clones share all of it.
#[derive(Clone)]
pub(crate) struct Events {
    log: Arc<dyn QuotaEventLog>,
    bell: Bell,
    stop: Arc<watch::Sender<bool>>,
    streams: Streams,
    /// Everybody who is told, once that is known.
    receivers: Arc<OnceLock<Vec<Receiver>>>,
}

/// Somebody who is told of events.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    /// By what name deliveries are noted.
    pub(crate) name: String,
    /// How people know it.
    pub(crate) shown: String,
}

/// Wakes those who wait for events.
#[derive(Clone, Default)]
pub(crate) struct Bell(Arc<watch::Sender<()>>);

/// Tells when to stop.
#[derive(Clone)]
pub(crate) struct Stopping(watch::Receiver<bool>);

/// What goes on beside the requests.
pub(crate) struct EventTasks {
    publishers: Vec<Publisher>,
    backlogs: Option<Backlogs>,
    scheduler: Scheduler,
}

// === impl Events ===

impl Events {
    pub(crate) fn new(log: Arc<dyn QuotaEventLog>) -> Self {
        Self {
            log,
            bell: Bell::default(),
            stop: Arc::new(watch::Sender::new(false)),
            streams: Streams::new(),
            receivers: Arc::default(),
        }
    }

    pub(crate) fn log(&self) -> &Arc<dyn QuotaEventLog> {
        &self.log
    }

    pub(crate) const fn bell(&self) -> &Bell {
        &self.bell
    }

    pub(crate) const fn streams(&self) -> &Streams {
        &self.streams
    }

    /// Everybody who is told.
    pub(crate) fn receivers(&self) -> &[Receiver] {
        self.receivers.get().map_or(&[], Vec::as_slice)
    }

    pub(crate) fn stopping(&self) -> Stopping {
        Stopping(self.stop.subscribe())
    }

    /// Ends streams, and publishers after what they have begun.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// The tasks that deliver events to everybody whom `config` names, and that keep house.
    pub(crate) fn tasks(
        &self,
        config: &Config,
        numbers: &EventNumbers,
        ledger: &Arc<dyn QuotaLedger>,
        audit: Arc<dyn AuditLog>,
        clock: &Arc<dyn Clock>,
    ) -> Result<EventTasks, Problem> {
        let sinks = sinks(config, numbers, clock)?;
        let kinds = sinks.iter().map(|sink| (sink.name().to_owned(), sink.kind())).collect();
        let backlogs = Backlogs::new(self, kinds, numbers.clone(), Arc::clone(clock));
        let receivers = sinks
            .iter()
            .map(|sink| Receiver { name: sink.name().to_owned(), shown: sink.shown().to_owned() });
        // It is asked for once.
        let _ = self.receivers.set(receivers.collect());
        let names = sinks.iter().map(|sink| sink.name().to_owned()).collect();
        let (ledger, clock) = (Arc::clone(ledger), Arc::clone(clock));
        let audit = AuditRetention { log: audit, kept: config.audit.retention() };
        let scheduler =
            Scheduler::new(&config.quota, ledger, audit, self, names, Arc::clone(&clock));
        let publisher = |sink| Publisher::new(self, sink, numbers, Arc::clone(&clock));
        let publishers: Vec<_> = sinks.into_iter().map(publisher).collect();
        let backlogs = (!publishers.is_empty()).then_some(backlogs);
        Ok(EventTasks { publishers, backlogs, scheduler })
    }
}

fn sinks(
    config: &Config,
    numbers: &EventNumbers,
    clock: &Arc<dyn Clock>,
) -> Result<Vec<Box<dyn Sink>>, Problem> {
    let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
    #[cfg(feature = "kafka")]
    if config.kafka.is_used() {
        sinks.push(Box::new(kafka::Kafka::new(&config.kafka, numbers)?));
    }
    #[cfg(not(feature = "kafka"))]
    let _ = numbers;
    for (place, webhook) in config.webhooks.iter().enumerate() {
        let webhook = Webhook::new(webhook, Arc::clone(clock));
        sinks.push(Box::new(webhook.map_err(|error| webhook::unusable(place, &error))?));
    }
    Ok(sinks)
}

// === impl EventTasks ===

impl EventTasks {
    pub(crate) fn spawn(self, tasks: &mut JoinSet<()>) {
        for publisher in self.publishers {
            tasks.spawn(publisher.run());
        }
        if let Some(backlogs) = self.backlogs {
            tasks.spawn(backlogs.run());
        }
        tasks.spawn(self.scheduler.run());
    }
}

// === impl Bell ===

impl Bell {
    pub(crate) fn ring(&self) {
        self.0.send_replace(());
    }

    /// Hears every ring from now on; several may sound as one.
    pub(crate) fn listen(&self) -> watch::Receiver<()> {
        self.0.subscribe()
    }
}

// === impl Stopping ===

impl Stopping {
    pub(crate) fn is_told(&self) -> bool {
        *self.0.borrow()
    }

    pub(crate) async fn told(&mut self) {
        // Whoever could tell is gone: that tells it too.
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}
