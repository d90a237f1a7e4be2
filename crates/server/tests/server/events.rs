//! What happens to quotas is told: over REST, as a stream, to webhooks, by one server of several.

mod listed;
pub(crate) mod receiver;
mod replicas;
mod startup;
mod stream;
mod support;
mod webhooks;
