//! Runs the tasks of the configuration in force.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
    time,
};
use tracing::warn;

use crate::{EventTasks, Events};

/// Runs tasks until shutdown, and replaces them when the configuration changes.
pub struct EventSupervisor {
    events: Events,
    tasks: EventTasks,
    next: NextTasks,
}

/// Replaces the tasks of a running [`EventSupervisor`].
#[derive(Clone)]
pub struct NextTasks(Arc<Slot>);

struct Slot {
    events: Events,
    tasks: Mutex<Option<EventTasks>>,
    filled: Notify,
}

/// Timeout of deliveries in flight when the tasks are replaced.
const LAST_DELIVERY: Duration = Duration::from_secs(5);

// === impl EventSupervisor ===

impl EventSupervisor {
    /// Creates a supervisor that starts with `tasks`.
    pub fn new(events: &Events, mut tasks: EventTasks) -> Self {
        events.set_receivers(tasks.take_receivers());
        let slot = Slot { events: events.clone(), tasks: Mutex::default(), filled: Notify::new() };
        Self { events: events.clone(), tasks, next: NextTasks(Arc::new(slot)) }
    }

    /// Returns the control that replaces the tasks.
    pub fn next(&self) -> NextTasks {
        self.next.clone()
    }

    /// Runs until shutdown, and then waits for deliveries in flight.
    pub async fn run(self) {
        let Self { events, mut tasks, next } = self;
        let mut shutdown = events.shutdown();
        loop {
            let mut running = JoinSet::new();
            let stop = tasks.spawn(&mut running);
            tasks = tokio::select! {
                () = shutdown.signalled() => {
                    stop.send_replace(true);
                    running.join_all().await;
                    return;
                }
                replacement = next.take() => replacement,
            };
            finish(running, &stop).await;
        }
    }
}

/// Waits for deliveries in flight, so that no event is delivered by two tasks at a time.
async fn finish(running: JoinSet<()>, stop: &watch::Sender<bool>) {
    stop.send_replace(true);
    if time::timeout(LAST_DELIVERY, running.join_all()).await.is_err() {
        warn!("replaced receivers of events during a delivery; its event may be delivered again");
    }
}

// === impl NextTasks ===

impl NextTasks {
    /// Replaces the running tasks by `tasks` as soon as deliveries in flight are done.
    pub fn replace(&self, mut tasks: EventTasks) {
        self.0.events.set_receivers(tasks.take_receivers());
        *self.0.tasks.lock().unwrap_or_else(PoisonError::into_inner) = Some(tasks);
        self.0.filled.notify_one();
    }

    async fn take(&self) -> EventTasks {
        loop {
            let taken = self.0.tasks.lock().unwrap_or_else(PoisonError::into_inner).take();
            match taken {
                Some(tasks) => return tasks,
                None => self.0.filled.notified().await,
            }
        }
    }
}
