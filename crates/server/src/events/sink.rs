use async_trait::async_trait;
use headgate_quota::QuotaEvent;
use thiserror::Error;

/// Somebody who is told of events.
#[async_trait]
pub(super) trait Sink: Send + Sync {
    /// By what name deliveries are noted: the same on every replica and after every restart.
    fn name(&self) -> &str;

    /// What kind of sink it is, for those who count.
    fn kind(&self) -> &'static str;

    /// What the log calls it.
    fn shown(&self) -> &str;

    /// Of how many subjects it is told at a time.
    fn lines(&self) -> usize;

    /// Tells of one event, if it is wanted; returns once it is there for good, or time is up.
    async fn deliver(&self, event: &QuotaEvent) -> Result<(), DeliveryError>;
}

/// Why an event was not delivered. It will be, later.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(super) enum DeliveryError {
    /// It would have been the same with any other event.
    #[error("{0}")]
    Unavailable(String),
    /// It was not taken; others may be.
    #[error("{0}")]
    Refused(String),
}

impl DeliveryError {
    /// Whether there is no use in trying another event.
    pub(super) const fn is_outage(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}
