//! Request ids: the client's own, or a new one.

use axum::{
    extract::Request,
    http::{HeaderName, HeaderValue},
    middleware::Next,
    response::Response,
};
use uuid::Uuid;

/// Id of a request.
#[derive(Clone, Debug)]
pub(crate) struct RequestId {
    /// The id.
    pub(crate) id: String,
    /// True if the client sent it; then it may be a retry.
    pub(crate) given: bool,
}

static HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// Maximum length of an id.
const MAX_BYTES: usize = 128;

/// Adds the id to the request and the response.
pub(super) async fn name(mut request: Request, next: Next) -> Response {
    let given = request.headers().get(&HEADER).and_then(|value| value.to_str().ok());
    let given = given.filter(|id| is_id(id)).map(str::to_owned);
    let id = match given {
        Some(id) => RequestId { id, given: true },
        None => RequestId { id: format!("req_{}", Uuid::new_v4().simple()), given: false },
    };
    let shown = HeaderValue::from_str(&id.id);
    request.extensions_mut().insert(id);
    let mut response = next.run(request).await;
    if let Ok(shown) = shown {
        response.headers_mut().insert(HEADER.clone(), shown);
    }
    response
}

fn is_id(text: &str) -> bool {
    (1..=MAX_BYTES).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}
