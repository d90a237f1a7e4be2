//! The way in: who may open a connection.

use std::net::SocketAddr;

use axum::{
    extract::{ConnectInfo, State, WebSocketUpgrade, ws::rejection::WebSocketUpgradeRejection},
    http::HeaderMap,
    response::{IntoResponse, Response},
};
use headgate_guard::Denial;

use super::{Relay, SERVICE, connection::Connection};
use crate::{
    http::error::ApiError,
    metrics::{Kind, Reason},
};

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
            return Denial::new(SERVICE, denied).response();
        }
    };
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(rejection) => return no_upgrade(&rejection).into_response(),
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

fn no_upgrade(rejection: &WebSocketUpgradeRejection) -> ApiError {
    let message = "this is a relay: it is spoken to over WebSocket";
    ApiError::new(rejection.status(), "UPGRADE_REQUIRED", message)
}
