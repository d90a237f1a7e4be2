//! Admission and upgrade of connections.

use std::net::SocketAddr;

use axum::{
    body::Body,
    extract::{ConnectInfo, Request, State},
    http::{HeaderValue, StatusCode, header::UPGRADE},
    response::{IntoResponse, Response},
};
use headgate_guard::{Denial, WebSocketConnection};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        handshake::server::create_response_with_body,
        protocol::{Role, WebSocketConfig},
    },
};

use super::{Relay, SERVICE, connection::Connection, fragments::FragmentCounter, information};
use crate::{
    documents::RelayDocument,
    http::error::ApiError,
    metrics::{Kind, Reason},
};

/// Bytes of a frame beside the largest event; enough for ten filters.
const FRAME_BYTES: u64 = 65_536;

/// Buffer of an idle connection, in each direction.
const BUFFER_BYTES: usize = 8_192;

/// Upgrades a connection, if the limits of the client's address allow it.
pub(super) async fn upgrade(
    State(relay): State<Relay>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    mut request: Request,
) -> Response {
    let address = relay.0.node.config.proxies.client(peer.ip(), request.headers());
    if relay.0.node.denies_address(address) {
        relay.0.reject(Reason::Denied, Kind::Connection);
        return ApiError::DENIED.into_response();
    }
    let admitted = match relay.0.guard.connect(address).await {
        Ok(admitted) => admitted,
        Err(denied) => {
            relay.0.reject(Reason::RateLimit, Kind::Connection);
            return Denial::new(SERVICE, denied).response();
        }
    };
    if !request.headers().contains_key(UPGRADE) && information::is_asked_for(request.headers()) {
        return information::document(&relay.0.node);
    }
    let Ok(answer) = create_response_with_body(&request, Body::empty) else {
        return upgrade_required();
    };
    let Some(upgraded) = request.extensions_mut().remove() else {
        return upgrade_required();
    };
    tokio::spawn(serve(relay, upgraded, admitted));
    answer
}

/// Serves a connection once the upgrade is done.
async fn serve(relay: Relay, upgraded: OnUpgrade, admitted: WebSocketConnection) {
    // The client may have left in the meantime.
    let Ok(upgraded) = upgraded.await else { return };
    let largest = relay.0.node.relay.with(max_message_bytes);
    let config = WebSocketConfig::default()
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(BUFFER_BYTES)
        .max_message_size(Some(largest))
        .max_frame_size(Some(largest));
    let stream = FragmentCounter::new(TokioIo::new(upgraded));
    let socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
    Connection::new(relay, socket, admitted).run().await;
}

/// Maximum size of a client's message.
pub(super) fn max_message_bytes(document: &RelayDocument) -> usize {
    let largest = document.limits.max_event_bytes.saturating_add(FRAME_BYTES);
    usize::try_from(largest).unwrap_or(usize::MAX)
}

fn upgrade_required() -> Response {
    let message = "this is a relay: it is spoken to over WebSocket";
    let error = ApiError::new(StatusCode::UPGRADE_REQUIRED, "UPGRADE_REQUIRED", message);
    let mut response = error.into_response();
    response.headers_mut().insert(UPGRADE, HeaderValue::from_static("websocket"));
    response
}
