//! `POST /api/v1/ratelimit/check`: may this subject go on?

mod answer;
mod field;
mod question;

use std::sync::Arc;

use axum::{extract::State, response::Response};
use tokio::time::Instant;

use self::{
    answer::Answer,
    question::{Question, WireQuestion},
};
use super::{Rest, error::ApiError, json::JsonBody};
use crate::rule::DecideError;

pub(super) async fn check(
    State(rest): State<Arc<Rest>>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let wire: WireQuestion<'_> = body.parse()?;
    let Question { scope, subject } = wire.validate(&rest.rule)?;

    let started = Instant::now();
    let decision = rest.rule.decide(&rest.limiter, scope, subject).await?;
    rest.metrics.checks.decided(&decision, started.elapsed());

    Ok(Answer { scope, subject, decision }.into())
}

impl From<DecideError> for ApiError {
    fn from(error: DecideError) -> Self {
        Self::Internal(error.to_string())
    }
}
