//! The node's documents: limits that an operator changes while the node runs.

pub mod auth;
pub mod bootstrap;
pub mod penalty;
pub mod relay;
pub mod user_api;

use std::ops::RangeInclusive;

use headgate_service_config::{Kinds, Reader};

pub use self::{
    auth::{AuthMode, AuthSettings},
    bootstrap::BootstrapDocument,
    penalty::PenaltySettings,
    relay::RelayDocument,
    user_api::UserApiDocument,
};

/// Range of a limit per minute. To close an entrance, stop the service behind it.
const PER_MINUTE: RangeInclusive<u64> = 1..=1_000_000;

/// The kinds of documents that the node registers.
pub fn kinds() -> Kinds {
    Kinds::new().with::<RelayDocument>().with::<UserApiDocument>().with::<BootstrapDocument>()
}

/// Reads the flag `enabled`: true if the section's limits are in force.
fn enabled(reader: &mut Reader<'_>) -> bool {
    reader.flag("enabled", true)
}

#[cfg(test)]
mod tests;
