//! Events of quotas: listed over REST, streamed, posted to webhooks, delivered by one of several
//! servers.

mod listed;
pub(crate) mod receiver;
mod replicas;
mod startup;
mod stream;
pub(crate) mod support;
mod webhooks;
