//! The Nostr relay: `/relay`, over WebSocket.

use std::sync::Arc;

use axum::Router;

use crate::Node;

/// The relay's routes. They get the address of the client's socket as
/// [`ConnectInfo<SocketAddr>`](axum::extract::ConnectInfo), and who that stands for from
/// [`Config::proxies`](crate::Config::proxies).
pub fn router(_node: &Arc<Node>) -> Router {
    Router::new()
}
