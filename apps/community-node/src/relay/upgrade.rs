//! The way in: who may open a connection.

use std::net::SocketAddr;

use axum::{
    Json,
    extract::{ConnectInfo, State, WebSocketUpgrade, ws::rejection::WebSocketUpgradeRejection},
    http::{HeaderMap, StatusCode, header::RETRY_AFTER},
    response::{IntoResponse, Response},
};
use headgate_guard::Denied;
use serde_json::json;

use super::{Relay, connection::Connection};
use crate::metrics::{Kind, Reason};

/// What a frame may have beside the largest event, and what ten filters need.
const FRAME_BYTES: usize = 65_536;

/// What a connection holds though nothing is said on it, once for each direction.
const BUFFER_BYTES: usize = 8_192;

/// Opens a connection, if the client's address may have one more.
pub(super) async fn upgrade(
    State(relay): State<Relay>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let address = relay.0.node.config.proxies.client(peer.ip(), &headers);
    let admitted = match relay.0.guard.connect(address).await {
        Ok(admitted) => admitted,
        Err(denied) => {
            relay.0.reject(Reason::RateLimit, Kind::Connection);
            return too_many(&denied);
        }
    };
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(rejection) => return rejection.into_response(),
    };
    let largest = relay.0.node.relay.with(|document| document.limits.max_event_bytes);
    let largest = usize::try_from(largest).unwrap_or(usize::MAX).saturating_add(FRAME_BYTES);
    upgrade
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(BUFFER_BYTES)
        .max_message_size(largest)
        .max_frame_size(largest)
        .on_upgrade(move |socket| Connection::new(relay, socket, admitted).run())
}

fn too_many(denied: &Denied) -> Response {
    let body = json!({"code": "RATE_LIMITED", "message": "rate limited", "details": null});
    let retry_after = [(RETRY_AFTER, denied.retry_after_secs().to_string())];
    (StatusCode::TOO_MANY_REQUESTS, retry_after, Json(body)).into_response()
}
