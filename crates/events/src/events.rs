use std::{
    iter, mem,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use arc_swap::ArcSwap;
use headgate::Clock;
use headgate_config::Problem;
use headgate_quota::{QuotaEventLog, QuotaLedger};
use headgate_ratelimit::AuditLog;
use tokio::{sync::watch, task::JoinSet};

use crate::{
    EventMetrics, EventStreams, KafkaConfig, ResetSchedule, RetentionConfig, WebhookConfig,
    backlog::Backlogs,
    publisher::EventPublisher,
    scheduler::{AuditRetention, Scheduler},
    sink::{self, EventSink},
};

/// The event log and the state of its readers. Clones share it.
#[derive(Clone)]
pub struct Events {
    log: Arc<dyn QuotaEventLog>,
    notifier: NewEvents,
    shutdown: Arc<watch::Sender<bool>>,
    streams: EventStreams,
    receivers: Arc<ArcSwap<Vec<Receiver>>>,
}

/// Settings of the background tasks.
#[derive(Clone, Copy)]
pub struct EventsConfig<'c> {
    /// The section `kafka`.
    pub kafka: &'c KafkaConfig,
    /// The list `webhooks`.
    pub webhooks: &'c [WebhookConfig],
    /// The section `quota.reset_schedule`.
    pub reset_schedule: &'c ResetSchedule,
    /// The section `quota.retention`.
    pub retention: &'c RetentionConfig,
    /// Retention of the audit log; `None` keeps it forever.
    pub audit_retention: Option<Duration>,
}

/// A receiver of events.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// Name under which deliveries are recorded.
    pub name: String,
    /// Name for people.
    pub display_name: String,
}

/// Notifies readers of the log of new events.
#[derive(Clone, Default)]
pub struct NewEvents(Arc<watch::Sender<()>>);

/// Signals that tasks and streams are to end.
#[derive(Clone)]
pub struct Shutdown(watch::Receiver<bool>);

/// The background tasks of one configuration, not yet running.
pub struct EventTasks {
    publishers: Vec<EventPublisher>,
    backlogs: Backlogs,
    scheduler: Scheduler,
    receivers: Vec<Receiver>,
    stop: watch::Sender<bool>,
}

// === impl EventsConfig ===

impl EventsConfig<'_> {
    /// Returns the files of certificates and keys of all receivers.
    pub fn files(&self) -> Vec<PathBuf> {
        let webhooks = self.webhooks.iter().map(WebhookConfig::tls_files);
        let all = iter::once(self.kafka.tls_files()).chain(webhooks);
        all.flat_map(|files| files.paths().map(Path::to_owned).collect::<Vec<_>>()).collect()
    }
}

// === impl Events ===

impl Events {
    /// Creates the readers' side of `log`.
    pub fn new(log: Arc<dyn QuotaEventLog>) -> Self {
        Self {
            log,
            notifier: NewEvents::default(),
            shutdown: Arc::new(watch::Sender::new(false)),
            streams: EventStreams::new(),
            receivers: Arc::default(),
        }
    }

    /// Returns the log.
    pub fn log(&self) -> &Arc<dyn QuotaEventLog> {
        &self.log
    }

    /// Returns the notifications of new events.
    pub const fn new_events(&self) -> &NewEvents {
        &self.notifier
    }

    /// Returns the bound on clients that follow events.
    pub const fn streams(&self) -> &EventStreams {
        &self.streams
    }

    /// Returns every configured receiver.
    pub fn receivers(&self) -> Arc<Vec<Receiver>> {
        self.receivers.load_full()
    }

    pub(crate) fn set_receivers(&self, receivers: Vec<Receiver>) {
        self.receivers.store(Arc::new(receivers));
    }

    /// Returns a signal that [`shut_down`](Self::shut_down) sets.
    pub fn shutdown(&self) -> Shutdown {
        Shutdown(self.shutdown.subscribe())
    }

    /// Ends streams at once, and tasks after their current step.
    pub fn shut_down(&self) {
        self.shutdown.send_replace(true);
    }

    /// Creates the tasks that deliver events to every sink of `config` and close periods.
    /// [`EventSupervisor`](crate::EventSupervisor) runs them.
    ///
    /// # Errors
    ///
    /// When a sink of the configuration cannot be created.
    pub fn tasks(
        &self,
        config: EventsConfig<'_>,
        metrics: &EventMetrics,
        ledger: &Arc<dyn QuotaLedger>,
        audit: Arc<dyn AuditLog>,
        clock: &Arc<dyn Clock>,
    ) -> Result<EventTasks, Problem> {
        let sinks = sink::all(config, metrics, clock)?;
        let (stop, stopped) = watch::channel(false);
        let stopped = Shutdown(stopped);
        let receivers = sinks.iter().map(|sink| Receiver::from(&**sink)).collect();
        let kinds = sinks.iter().map(|sink| (sink.name().to_owned(), sink.kind())).collect();
        let backlogs =
            Backlogs::new(self, kinds, metrics.clone(), Arc::clone(clock), stopped.clone());
        let names = sinks.iter().map(|sink| sink.name().to_owned()).collect();
        let audit = AuditRetention { log: audit, kept: config.audit_retention };
        let (ledger, now) = (Arc::clone(ledger), Arc::clone(clock));
        let scheduler = Scheduler::new(config, ledger, audit, self, names, now, stopped.clone());
        let kept = config.retention.events();
        let publisher = |sink| {
            EventPublisher::new(self, sink, metrics, Arc::clone(clock), kept, stopped.clone())
        };
        let publishers: Vec<_> = sinks.into_iter().map(publisher).collect();
        Ok(EventTasks { publishers, backlogs, scheduler, receivers, stop })
    }
}

impl From<&dyn EventSink> for Receiver {
    fn from(sink: &dyn EventSink) -> Self {
        Self { name: sink.name().to_owned(), display_name: sink.display_name().to_owned() }
    }
}

// === impl EventTasks ===

impl EventTasks {
    /// Takes the receivers of these tasks.
    pub(crate) fn take_receivers(&mut self) -> Vec<Receiver> {
        mem::take(&mut self.receivers)
    }

    /// Starts every task in `tasks`, and returns what stops them.
    pub(crate) fn spawn(self, tasks: &mut JoinSet<()>) -> watch::Sender<bool> {
        for publisher in self.publishers {
            tasks.spawn(publisher.run());
        }
        tasks.spawn(self.backlogs.run());
        tasks.spawn(self.scheduler.run());
        self.stop
    }
}

// === impl NewEvents ===

impl NewEvents {
    /// Wakes every subscriber.
    pub fn notify(&self) {
        self.0.send_replace(());
    }

    /// Receives every notification from now on; several may arrive as one.
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.0.subscribe()
    }
}

// === impl Shutdown ===

impl Shutdown {
    /// Returns true once it has been signalled.
    pub fn is_signalled(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is signalled.
    pub async fn signalled(&mut self) {
        // A dropped sender is a signal, too.
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}
