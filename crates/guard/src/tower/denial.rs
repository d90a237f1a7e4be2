//! Responses to denied requests.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER},
};

use super::headers::{self, LimitStatus};
use crate::{Denied, Reason, Surface};

/// A denied request, for rendering a response.
#[derive(Clone, Copy, Debug)]
pub struct Denial<'a> {
    class: &'a str,
    denied: Denied,
}

/// Renders a denial as a response. Limit headers are added to it.
///
/// Two denials are not rate limits, and their status is replaced: a request without a peer address
/// is answered with 500, or `INTERNAL` for gRPC; one without a key with 400, or `INVALID_ARGUMENT`.
pub trait Render<B> {
    /// The response to a denied request.
    fn render(&self, denial: &Denial<'_>) -> Response<B>;
}

/// Default responses. Over HTTP: 429 and
/// `{"code":"RATE_LIMITED","message":"rate limited","details":null}`. Over gRPC:
/// `RESOURCE_EXHAUSTED`, as trailers only.
#[derive(Clone, Copy, Debug, Default)]
pub struct Standard;

/// gRPC responses to every request: `RESOURCE_EXHAUSTED`, as trailers only.
#[derive(Clone, Copy, Debug, Default)]
pub struct Grpc;

/// Responses rendered by a closure.
pub struct Custom<F>(Arc<F>);

const BODY: &[u8] = br#"{"code":"RATE_LIMITED","message":"rate limited","details":null}"#;

const FAILURE_BODY: &[u8] =
    br#"{"code":"INTERNAL_ERROR","message":"internal error","details":null}"#;

const MISSING_KEY_BODY: &[u8] =
    br#"{"code":"BAD_REQUEST","message":"request has no rate limit key","details":null}"#;

const MISSING_KEY: &str = "request has no rate limit key";

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// gRPC metadata key for the milliseconds that a client with automatic retries has to wait.
const GRPC_PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

// === impl Denial ===

impl<'a> Denial<'a> {
    /// A denial of a request of `class`.
    pub const fn new(class: &'a str, denied: Denied) -> Self {
        Self { class, denied }
    }

    /// The class of the request.
    pub const fn class(&self) -> &'a str {
        self.class
    }

    /// The reason, and the time to wait.
    pub const fn denied(&self) -> &Denied {
        &self.denied
    }

    /// The default response.
    pub fn response<B: From<Bytes>>(&self) -> Response<B> {
        self.respond(&Standard)
    }

    /// The response of `render`, with limit headers.
    pub fn respond<B>(&self, render: &impl Render<B>) -> Response<B> {
        let mut response = render.render(self);
        match self.denied.reason {
            // Waiting does not help in these two cases.
            Reason::UnknownPeer => {
                replace_status(
                    &mut response,
                    StatusCode::INTERNAL_SERVER_ERROR,
                    ("13", "internal error"),
                );
            }
            Reason::MissingKey => {
                replace_status(&mut response, StatusCode::BAD_REQUEST, ("3", MISSING_KEY));
            }
            _ => self.write(response.headers_mut()),
        }
        response
    }

    /// Writes the time to wait, and the state of the limit that denied the request.
    fn write(&self, headers: &mut HeaderMap) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers::put(headers, RETRY_AFTER, self.denied.retry_after_secs());
        if self.denied.surface == Surface::Grpc {
            let millis = self.denied.retry_after.as_micros().div_ceil(1000) as u64;
            headers::put(headers, GRPC_PUSHBACK, millis);
        }
        if let Some(decision) = &self.denied.decision {
            let Denied { window_secs, .. } = self.denied;
            // The same as `Retry-After`: a client that waits for either is admitted.
            let more_secs = Some(self.denied.retry_after_secs());
            headers::write(
                headers,
                &LimitStatus { class: self.class, window_secs, more_secs, decision },
            );
        }
    }
}

// === impl Standard ===

impl<B: From<Bytes>> Render<B> for Standard {
    fn render(&self, denial: &Denial<'_>) -> Response<B> {
        if denial.denied.surface == Surface::Grpc {
            return grpc_status(denial, B::from(Bytes::new()));
        }
        let (status, body) = match denial.denied.reason {
            Reason::UnknownPeer => (StatusCode::INTERNAL_SERVER_ERROR, FAILURE_BODY),
            Reason::MissingKey => (StatusCode::BAD_REQUEST, MISSING_KEY_BODY),
            _ => (StatusCode::TOO_MANY_REQUESTS, BODY),
        };
        let mut response = Response::new(B::from(Bytes::from_static(body)));
        *response.status_mut() = status;
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, json);
        response
    }
}

// === impl Grpc ===

impl<B: Default> Render<B> for Grpc {
    fn render(&self, denial: &Denial<'_>) -> Response<B> {
        grpc_status(denial, B::default())
    }
}

/// A response without a message: the headers hold the trailers.
fn grpc_status<B>(denial: &Denial<'_>, empty: B) -> Response<B> {
    let (status, message) = match denial.denied.reason {
        Reason::MissingKey => ("3", MISSING_KEY),
        _ => ("8", "rate limited"),
    };
    let mut response = Response::new(empty);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(GRPC_STATUS, HeaderValue::from_static(status));
    headers.insert(GRPC_MESSAGE, HeaderValue::from_static(message));
    response
}

// === impl Custom ===

impl<F> Custom<F> {
    /// Renders with `respond`.
    pub fn new(respond: F) -> Self {
        Self(Arc::new(respond))
    }
}

impl<F, B> Render<B> for Custom<F>
where
    F: Fn(&Denial<'_>) -> Response<B>,
{
    fn render(&self, denial: &Denial<'_>) -> Response<B> {
        (self.0)(denial)
    }
}

impl<F> Clone for Custom<F> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<F> fmt::Debug for Custom<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Custom").finish_non_exhaustive()
    }
}

/// Replaces the status, or that of gRPC and its message; the body stays as rendered.
fn replace_status<B>(
    response: &mut Response<B>,
    status: StatusCode,
    (grpc_status, grpc_message): (&'static str, &'static str),
) {
    if response.headers().contains_key(GRPC_STATUS) {
        let headers = response.headers_mut();
        headers.insert(GRPC_STATUS, HeaderValue::from_static(grpc_status));
        headers.insert(GRPC_MESSAGE, HeaderValue::from_static(grpc_message));
    } else {
        *response.status_mut() = status;
    }
}
