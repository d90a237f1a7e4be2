//! The sections `kafka`, `webhooks`, `quota.reset_schedule` and `quota.retention` of the
//! configuration.

mod housekeeping;
mod kafka;
mod webhooks;

pub use self::{
    housekeeping::{ResetSchedule, RetentionConfig, Schedule},
    kafka::{Broker, KafkaConfig, SaslMechanism, SecurityProtocol, Topic},
    webhooks::{EventName, WebhookConfig, WebhookUrl, webhook_contradictions},
};
