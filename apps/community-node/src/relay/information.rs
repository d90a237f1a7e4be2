//! The relay information document (NIP-11).

use axum::{
    Json,
    http::{
        HeaderMap, HeaderName, HeaderValue, StatusCode,
        header::{
            ACCEPT, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
            ACCESS_CONTROL_ALLOW_ORIGIN, CONTENT_TYPE,
        },
    },
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use super::{
    event::{MAX_AGE_SECONDS, MAX_AHEAD_SECONDS},
    filter::{DEFAULT_LIMIT, MAX_LIMIT},
    subscriptions::{MAX_ID_BYTES, MAX_SUBSCRIPTIONS},
    upgrade::max_message_bytes,
};
use crate::{
    Node,
    documents::{BootstrapDocument, RelayDocument},
};

/// Media type of the document.
const MEDIA_TYPE: &str = "application/nostr+json";

const SUPPORTED_NIPS: [u16; 6] = [1, 9, 11, 40, 42, 70];

/// Returns true if a request asks for the document, not for a connection.
pub(super) fn is_asked_for(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut types = accepted.flat_map(|value| value.split(','));
    types.any(|accepted| {
        accepted.split(';').next().is_some_and(|name| name.trim().eq_ignore_ascii_case(MEDIA_TYPE))
    })
}

/// Response with the document.
pub(super) fn document(node: &Node) -> Response {
    let (relay, bootstrap) = (node.relay.current(), node.bootstrap.current());
    let auth_required = relay.document.auth.is_enforced(node.seconds());
    let document = describe(&relay.document, &bootstrap.document, auth_required);
    let mut response = Json(document).into_response();
    let media_type = HeaderValue::from_static(MEDIA_TYPE);
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    allow_all_origins(response.headers_mut());
    response
}

/// Answers CORS preflights: any web page may ask.
pub(crate) async fn preflight() -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    allow_all_origins(response.headers_mut());
    response
}

fn allow_all_origins(headers: &mut HeaderMap) {
    let all: [(HeaderName, &str); 3] = [
        (ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        (ACCESS_CONTROL_ALLOW_HEADERS, "*"),
        (ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, OPTIONS"),
    ];
    for (name, value) in all {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

fn describe(relay: &RelayDocument, bootstrap: &BootstrapDocument, auth_required: bool) -> Value {
    // From the operator's descriptor, if there is one.
    let said = |name: &str| {
        let descriptor = bootstrap.descriptor.as_ref();
        descriptor.and_then(|descriptor| descriptor.get(name)).filter(|value| value.is_string())
    };
    let usual = json!("Headgate community node");
    let mut document = json!({
        "name": said("name").unwrap_or(&usual),
        "supported_nips": SUPPORTED_NIPS,
        "software": env!("CARGO_PKG_REPOSITORY"),
        "version": env!("CARGO_PKG_VERSION"),
        "limitation": {
            "max_message_length": max_message_bytes(relay),
            "max_subscriptions": MAX_SUBSCRIPTIONS,
            "max_limit": MAX_LIMIT,
            "default_limit": DEFAULT_LIMIT,
            "max_subid_length": MAX_ID_BYTES,
            "max_event_tags": relay.limits.max_tags,
            "max_content_length": relay.limits.max_event_bytes,
            "min_pow_difficulty": 0,
            "auth_required": auth_required,
            "payment_required": false,
            // An event needs a topic.
            "restricted_writes": true,
            "created_at_lower_limit": MAX_AGE_SECONDS,
            "created_at_upper_limit": MAX_AHEAD_SECONDS,
        },
    });
    // Fields without a value are left out: clients may expect strings.
    if let Some(description) = said("description") {
        document["description"] = description.clone();
    }
    document
}
