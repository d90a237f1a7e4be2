//! Delivers quota events, and closes quota periods on schedule.
//!
//! Events are in the database, written in one transaction with the usage that caused them. Only the
//! current batch is kept in memory, and no request waits for a delivery.
//!
//! | module | contents |
//! |---|---|
//! | `events` | [`Events`]: the log, new-event notifications, shutdown; [`EventTasks`]: the background tasks |
//! | `supervisor` | [`EventSupervisor`]: runs these tasks, and replaces them when the configuration changes |
//! | `publisher` | the task of one sink: becomes leader, reads, delivers, records |
//! | `pass` | progress of a publisher through the log |
//! | `blocked` | subjects with a rejected or failed event, and when each is tried again |
//! | `batch` | delivers one batch: subjects concurrently, the events of each in order |
//! | `sink` | receivers of events: webhooks, Kafka |
//! | `backlog` | gauges of undelivered events |
//! | `streams` | [`EventStreams`]: a bound on clients that follow events |
//! | `scheduler`, [`cron`] | closes periods and deletes old data, on schedule |
//! | `metrics` | [`EventMetrics`] |
//! | `config` | the sections `kafka`, `webhooks`, `quota.reset_schedule` and `quota.retention` |

mod backlog;
mod batch;
mod blocked;
mod config;
pub mod cron;
mod events;
mod metrics;
mod pass;
mod publisher;
mod scheduler;
mod sink;
mod streams;
mod supervisor;

pub use self::{
    config::{
        Broker, EventName, KafkaConfig, ResetSchedule, RetentionConfig, SaslMechanism, Schedule,
        SecurityProtocol, Topic, WebhookConfig, WebhookUrl, webhook_contradictions,
    },
    events::{EventTasks, Events, EventsConfig, NewEvents, Receiver, Shutdown},
    metrics::EventMetrics,
    streams::{EventStreams, StreamLimit, StreamPermit},
    supervisor::{EventSupervisor, NextTasks},
};

#[cfg(test)]
mod tests;
