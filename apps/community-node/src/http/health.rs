//! Health and metrics. The database is not queried: the node goes on without it.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::State,
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};
use headgate_service_config::{LoadError, Source};
use serde_json::{Value, json};

use super::{Http, error::ApiError};

pub(super) fn router(http: &Arc<Http>) -> Router {
    Router::new().route("/healthz", get(health)).with_state(Arc::clone(http))
}

pub(super) fn metrics_router(http: &Arc<Http>) -> Router {
    Router::new().route("/metrics", get(metrics)).with_state(Arc::clone(http))
}

/// `GET /healthz`: the sources of the services' settings, and the states of the denylist and of the
/// certificates. A node that does not run on its current documents is degraded, and still answers
/// 200; so is one whose certificates are about to expire or could not be reloaded.
async fn health(State(http): State<Arc<Http>>) -> Response {
    let node = &http.node;
    let sources = node.sources();
    let has_denylist = node.denylist.is_loaded();
    let has_certificates = node.tls.as_ref().map(|tls| tls.warnings().is_empty());
    let well = has_denylist
        && has_certificates.unwrap_or(true)
        && sources.iter().all(|(_, source)| is_well(source));
    let (status, code) = match (node.is_draining(), well) {
        (true, _) => ("unavailable", StatusCode::SERVICE_UNAVAILABLE),
        (false, true) => ("ok", StatusCode::OK),
        (false, false) => ("degraded", StatusCode::OK),
    };
    let services: serde_json::Map<String, Value> =
        sources.iter().map(|(service, source)| ((*service).to_owned(), shown(source))).collect();
    let denylist = if has_denylist { "loaded" } else { "not_loaded" };
    let mut body = json!({"status": status, "services": services, "denylist": denylist});
    if let Some(is_well) = has_certificates {
        // Paths and dates are in the log and in the metrics.
        body["certificates"] = json!(if is_well { "ok" } else { "warning" });
    }
    (code, Json(body)).into_response()
}

/// Returns true if the settings are as intended, which safe defaults are if there is no document.
fn is_well(source: &Source) -> bool {
    matches!(source, Source::Document { .. } | Source::SafeDefaults { problem: LoadError::Missing })
}

/// Shows a problem as one word; details are in the log.
fn shown(source: &Source) -> Value {
    let problem = source.problem().map(|problem| match problem {
        LoadError::Missing => "missing",
        LoadError::Invalid { .. } => "broken",
        LoadError::Unreadable(_) => "unreadable",
    });
    json!({"source": source.name(), "version": source.version(), "problem": problem})
}

/// `GET /metrics`
async fn metrics(State(http): State<Arc<Http>>) -> Result<Response, ApiError> {
    let node = &http.node;
    let refresh = || {
        for (service, source) in node.sources() {
            node.metrics.config_is(service, &source);
        }
        if let Some(tls) = &node.tls {
            node.metrics.certificates_are(tls);
        }
    };
    let text = node.metrics.shared_text(refresh).map_err(|_| ApiError::INTERNAL)?;
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response())
}
