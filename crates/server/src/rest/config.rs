//! `POST /api/v1/config/reload`: reads the configuration again.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use headgate_api::run_to_completion;
use headgate_auth::Action;
use headgate_config::{Change, ConfigError};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{
    caller::Caller,
    error::{ApiError, Detail},
    json,
    json_body::EmptyBody,
    query::Query,
    schemas::{Failing, Protected, Unloadable, WithBody},
};
use crate::reload::{ReloadError, Reloaded, Reloader, Trigger};

/// The path.
pub(super) const PATH: &str = "/api/v1/config/reload";

/// The result of a reload.
#[derive(Serialize, ToSchema)]
#[schema(as = ConfigReload)]
struct WireReload {
    /// True if nothing was changed because the request asked for that.
    dry_run: bool,
    /// Changes that are in force now.
    applied: Vec<WireChange>,
    /// Changes that need a restart.
    restart_required: Vec<WireChange>,
    /// Fingerprint of the configuration in force.
    config_version: String,
}

/// A changed key.
#[derive(Serialize, ToSchema)]
#[schema(as = ConfigChange)]
struct WireChange {
    #[schema(example = "server.request_timeout_seconds")]
    key: String,
    /// Value in force before, with secrets masked.
    #[schema(value_type = Value)]
    old: Value,
    /// Value in the file and the environment, with secrets masked.
    #[schema(value_type = Value)]
    new: Value,
}

/// Reads the configuration file and the environment again, and applies the keys that can change while the server runs: all or none.
#[utoipa::path(
    post,
    path = PATH,
    tag = "config",
    operation_id = "reload_config",
    params(("dry_run" = Option<bool>, Query, description = "`true` only shows what would change")),
    security(("token" = [])),
    responses((status = 200, description = "What has changed", body = WireReload), WithBody, Protected, Unloadable, Failing),
)]
pub(super) async fn reload(
    State(reloader): State<Arc<Reloader>>,
    caller: Caller,
    query: Query,
    body: EmptyBody,
) -> Result<Response, ApiError> {
    let author = caller.may(Action::ReloadConfig).await?;
    body.check()?;
    let mut reader = query.reader(&[&["dry_run"]]);
    let dry_run = reader.parsed("dry_run", || "dry_run must be true or false".to_owned());
    reader.finish()?;
    let (reloading, dry_run) = (Arc::clone(&reloader), dry_run.unwrap_or(false));
    let done = run_to_completion(async move {
        if dry_run {
            reloading.dry_run().await
        } else {
            reloading.reload(Trigger::Request(author)).await
        }
    });
    let Reloaded { applied, restart_required } = done.await?;
    Ok(json::respond(&WireReload {
        dry_run,
        applied: applied.iter().map(WireChange::from).collect(),
        restart_required: restart_required.iter().map(WireChange::from).collect(),
        config_version: reloader.status().version.clone(),
    }))
}

impl From<&Change> for WireChange {
    fn from(Change { key, old, new }: &Change) -> Self {
        Self { key: key.clone(), old: json!(old), new: json!(new) }
    }
}

impl From<ReloadError> for ApiError {
    fn from(error: ReloadError) -> Self {
        match error {
            ReloadError::Invalid(cause) => {
                let message = "invalid configuration; nothing was changed";
                Self::ConfigRefused(message.to_owned(), problems(cause))
            }
            ReloadError::NeedsRestart { .. } => Self::ConfigRefused(error.to_string(), Vec::new()),
            ReloadError::Unrecorded(cause) => cause.into(),
            ReloadError::Stopping => Self::Internal(error.to_string()),
        }
    }
}

/// Returns each problem with its place.
fn problems(error: ConfigError) -> Vec<Detail> {
    let problems = error.into_problems().into_iter();
    problems
        .map(|problem| Detail::at(problem.key().to_owned(), "invalid", problem.to_string()))
        .collect()
}
