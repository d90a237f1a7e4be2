//! Bootstrap: data that clients read before they know any node.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use headgate_service_config::Active;
use serde_json::{Value, json};

use super::{
    super::{Http, body::PathPart, error::ApiError},
    caller,
};
use crate::documents::BootstrapDocument;

/// `GET /v1/bootstrap/nodes`: this node, and others that it knows.
pub(super) async fn nodes(
    State(http): State<Arc<Http>>,
    headers: HeaderMap,
) -> Result<Json<Value>, ApiError> {
    let active = open(&http, &headers)?;
    let document = &active.document;
    let items: Vec<&Value> = document.descriptor.iter().chain(&document.nodes).collect();
    Ok(Json(json!({"items": items, "exp": document.exp})))
}

/// `GET /v1/bootstrap/hints/latest`: 204 if there is none.
pub(super) async fn latest_hint(
    State(http): State<Arc<Http>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let active = open(&http, &headers)?;
    Ok(match &active.document.hint {
        Some(hint) => Json(hint.clone()).into_response(),
        None => StatusCode::NO_CONTENT.into_response(),
    })
}

/// `GET /v1/bootstrap/topics/{topic}/services`
pub(super) async fn services(
    State(http): State<Arc<Http>>,
    PathPart(topic): PathPart,
    headers: HeaderMap,
) -> Result<Json<Value>, ApiError> {
    let active = open(&http, &headers)?;
    if !is_topic(&topic) {
        return Err(ApiError::INVALID_TOPIC);
    }
    let none = Value::Array(Vec::new());
    let items = active.document.topics.get(&topic).unwrap_or(&none);
    Ok(Json(json!({"topic": topic, "items": items})))
}

/// Returns the document, if the client may read it.
fn open(http: &Http, headers: &HeaderMap) -> Result<Arc<Active<BootstrapDocument>>, ApiError> {
    let active = http.node.bootstrap.current();
    if active.document.auth.is_enforced(http.node.seconds()) {
        caller::owner(http, headers)?;
    }
    Ok(active)
}

fn is_topic(topic: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    (1..=128).contains(&topic.len()) && topic.bytes().all(plain)
}
