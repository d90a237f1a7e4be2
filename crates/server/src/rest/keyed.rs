//! `/api/v1/rate-limit`: limits by the name of an algorithm, for any key. No rule has to be written first.
//!
//! This surface has its own words: bodies in camel case, 429 for a denial, and errors as
//! `{error, message, requestedAlgorithm, supportedAlgorithms}`.

mod answer;
pub(super) mod check;
mod described;
mod error;
mod parameters;
pub(super) mod remaining;
pub(super) mod reset;

use axum::http::HeaderValue;

pub(super) use self::{
    answer::{WireDecision, WireRemaining},
    error::{Envelope, Refusal, envelope},
};

/// What all paths of this surface begin with.
pub(super) const PREFIX: &str = "/api/v1/rate-limit/";

/// Answers are about this moment, and a check that is repeated takes again.
pub(super) const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
