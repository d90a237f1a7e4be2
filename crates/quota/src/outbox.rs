//! The storage of events until they are delivered.

use async_trait::async_trait;
use headgate::Timestamp;

use crate::{QuotaEvent, RepositoryError};

/// Stores events in the order of their commits, and their deliveries.
#[async_trait]
pub trait QuotaEventLog: Send + Sync {
    /// Returns up to `max` events after this position. A reader that continues after the last event
    /// it got misses none.
    async fn after(&self, seq: i64, max: u32) -> Result<Vec<LoggedEvent>, RepositoryError>;

    /// Returns up to `max` events before this position, newest first.
    async fn before(&self, seq: i64, max: u32) -> Result<Vec<LoggedEvent>, RepositoryError>;

    /// Returns the deliveries of these events.
    async fn deliveries(&self, event_ids: &[&str]) -> Result<Vec<Delivery>, RepositoryError>;

    /// Returns up to `max` events after this position that are not delivered to `sink`, oldest
    /// first.
    async fn undelivered(
        &self,
        sink: &str,
        seq: i64,
        max: u32,
    ) -> Result<Vec<LoggedEvent>, RepositoryError>;

    /// Records the delivery of events to `sink`.
    async fn delivered(
        &self,
        sink: &str,
        event_ids: &[&str],
        at: Timestamp,
    ) -> Result<(), RepositoryError>;

    /// Returns the backlog of `sink`.
    async fn backlog(&self, sink: &str) -> Result<Backlog, RepositoryError>;

    /// Tries to become the leader for `task` among all processes that share the database, until the
    /// returned value is dropped. `None` if another process is.
    async fn lead(&self, task: &str) -> Result<Option<Box<dyn Leadership>>, RepositoryError>;
}

/// Leadership for a task that one process performs at a time. Dropping it gives it up.
#[async_trait]
pub trait Leadership: Send {
    /// Returns `true` if it is still held: it is lost with the connection to the database.
    async fn holds(&mut self) -> bool;
}

/// An event and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedEvent {
    /// Position: later events have larger ones.
    pub seq: i64,
    /// The event.
    pub event: QuotaEvent,
}

/// A delivered event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Id of the event.
    pub event_id: String,
    /// Name of the sink.
    pub sink: String,
    /// Time of the delivery.
    pub at: Timestamp,
}

/// Events that are not delivered to a sink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Number of events.
    pub events: u64,
    /// Time of the oldest.
    pub oldest: Option<Timestamp>,
}
