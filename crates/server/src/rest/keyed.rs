//! `/api/v1/rate-limit`: limits by the name of an algorithm, for any key. No rule has to be written
//! first.
//!
//! This API has its own format: bodies in camel case, 429 for a denial, and errors as `{error,
//! message, requestedAlgorithm, supportedAlgorithms}`.

mod answer;
pub(super) mod check;
pub(super) mod described;
mod parameters;
pub(super) mod remaining;
pub(super) mod reset;

use headgate_api::rate_limits::MeteredKeys;
use headgate_ratelimit::KeyedAlgorithm;

use super::client::Clients;

pub(super) use self::answer::{WireDecision, WireRemaining};

/// The use case and settings of the handlers below.
pub(crate) struct KeyedApi {
    pub(crate) limits: MeteredKeys,
    /// The algorithm of requests that name none.
    pub(crate) default_algorithm: KeyedAlgorithm,
    pub(crate) clients: Clients,
}
