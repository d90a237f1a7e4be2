//! `GET /healthz` and `GET /readyz`.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use serde::Serialize;

use super::{Rest, json};
use crate::rule::DecideError;

#[derive(Serialize)]
struct Liveness {
    status: &'static str,
}

#[derive(Serialize)]
struct Readiness {
    status: &'static str,
    checks: Checks,
}

#[derive(Serialize)]
struct Checks {
    store: String,
}

/// The process answers. It asks nobody: restarting it would bring no store back.
pub(super) async fn live() -> Response {
    json::respond(&Liveness { status: "ok" })
}

/// The server can decide. Without its store it is degraded but still ready, since the
/// failure policy decides; taken out of service, it could not even do that.
pub(super) async fn ready(State(rest): State<Arc<Rest>>) -> Response {
    let (status, store) = match ask_store(&rest).await {
        Ok(()) => ("ready", "ok".to_owned()),
        Err(error) => ("degraded", format!("error: {error}")),
    };
    json::respond(&Readiness { status, checks: Checks { store } })
}

/// Asks the store, and notes whether it answered.
pub(super) async fn ask_store(rest: &Rest) -> Result<(), DecideError> {
    let answer = rest.probe.ask().await;
    rest.metrics.store_is(answer.is_ok());
    answer
}
