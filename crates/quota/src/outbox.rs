//! What is asked of whoever keeps events until others have them.

use async_trait::async_trait;
use headgate::Timestamp;

use crate::{QuotaEvent, RepositoryError};

/// Keeps events in the order in which they happened, and who has them.
#[async_trait]
pub trait QuotaEventLog: Send + Sync {
    /// At most `max` events after this place in the log. A reader that goes on from the last one
    /// it got misses none.
    async fn after(&self, seq: i64, max: u32) -> Result<Vec<LoggedEvent>, RepositoryError>;

    /// At most `max` events before this place in the log, the newest first.
    async fn before(&self, seq: i64, max: u32) -> Result<Vec<LoggedEvent>, RepositoryError>;

    /// Who has these events.
    async fn deliveries(&self, event_ids: &[&str]) -> Result<Vec<Delivery>, RepositoryError>;

    /// At most `max` events after this place in the log that `sink` does not have, the oldest first.
    async fn undelivered(
        &self,
        sink: &str,
        seq: i64,
        max: u32,
    ) -> Result<Vec<LoggedEvent>, RepositoryError>;

    /// Notes that `sink` has these events.
    async fn delivered(
        &self,
        sink: &str,
        event_ids: &[&str],
        at: Timestamp,
    ) -> Result<(), RepositoryError>;

    /// What `sink` does not have yet.
    async fn backlog(&self, sink: &str) -> Result<Backlog, RepositoryError>;

    /// Whether this process is the one that does `task`, among all that share the database; it
    /// is for as long as it holds what it is given. `None` while another one is.
    async fn lead(&self, task: &str) -> Result<Option<Box<dyn Leadership>>, RepositoryError>;
}

/// The right to do a task that only one process does at a time. Whoever drops it gives it up.
#[async_trait]
pub trait Leadership: Send {
    /// Whether the right is still ours: it is lost with the connection to the database.
    async fn holds(&mut self) -> bool;
}

/// An event, and its place in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedEvent {
    /// Its place: later events have larger ones.
    pub seq: i64,
    /// What happened.
    pub event: QuotaEvent,
}

/// An event that a sink has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Which event.
    pub event_id: String,
    /// Who has it.
    pub sink: String,
    /// Since when.
    pub at: Timestamp,
}

/// Events that a sink does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// How many there are.
    pub events: u64,
    /// When the oldest happened.
    pub oldest: Option<Timestamp>,
}
