//! What those are told who have to wait.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER},
};

use super::headers::{self, Standing};
use crate::{Denied, Reason, Surface};

/// A denial that is about to be answered.
#[derive(Clone, Copy, Debug)]
pub struct Denial<'a> {
    class: &'a str,
    denied: Denied,
}

/// Puts a denial into an answer's words. Headers about limits are added to what it makes; if the
/// service does not know where requests come from, its status becomes 500, or `INTERNAL` for gRPC.
pub trait Render<B> {
    /// The answer to a request that has to wait.
    fn render(&self, denial: &Denial<'_>) -> Response<B>;
}

/// The usual words. To HTTP: 429 and `{"code":"RATE_LIMITED","message":"rate limited","details":null}`.
/// To gRPC: `RESOURCE_EXHAUSTED`, as trailers alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Standard;

/// To everybody `RESOURCE_EXHAUSTED`, as trailers alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Grpc;

/// The words of a closure.
pub struct Custom<F>(Arc<F>);

const BODY: &[u8] = br#"{"code":"RATE_LIMITED","message":"rate limited","details":null}"#;

const FAILURE_BODY: &[u8] =
    br#"{"code":"INTERNAL_ERROR","message":"internal error","details":null}"#;

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// How long a client that retries by itself is to wait, in milliseconds.
const GRPC_PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

// === impl Denial ===

impl<'a> Denial<'a> {
    /// The denial of a request of `class`.
    pub const fn new(class: &'a str, denied: Denied) -> Self {
        Self { class, denied }
    }

    /// The class of the request.
    pub const fn class(&self) -> &'a str {
        self.class
    }

    /// Why, and for how long.
    pub const fn denied(&self) -> &Denied {
        &self.denied
    }

    /// The usual answer.
    pub fn response<B: From<Bytes>>(&self) -> Response<B> {
        self.respond(&Standard)
    }

    /// The answer in the words of `render`, and its headers.
    pub fn respond<B>(&self, render: &impl Render<B>) -> Response<B> {
        let mut response = render.render(self);
        if self.is_our_fault() {
            write_failure(&mut response);
        } else {
            self.write(response.headers_mut());
        }
        response
    }

    /// Whether the service was put together wrongly, and the client could do nothing about it.
    fn is_our_fault(&self) -> bool {
        self.denied.reason == Reason::UnknownPeer
    }

    /// Writes how long to wait, and how the limit stands that denied.
    fn write(&self, headers: &mut HeaderMap) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers::put(headers, RETRY_AFTER, self.denied.retry_after_secs());
        if self.denied.surface == Surface::Grpc {
            let millis = self.denied.retry_after.as_micros().div_ceil(1000) as u64;
            headers::put(headers, GRPC_PUSHBACK, millis);
        }
        if let Some(decision) = &self.denied.decision {
            let Denied { window_secs, .. } = self.denied;
            // Both speak of the same moment: a client that waits for either is admitted.
            let more_secs = Some(self.denied.retry_after_secs());
            headers::write(
                headers,
                &Standing { class: self.class, window_secs, more_secs, decision },
            );
        }
    }
}

// === impl Standard ===

impl<B: From<Bytes>> Render<B> for Standard {
    fn render(&self, denial: &Denial<'_>) -> Response<B> {
        if denial.denied.surface == Surface::Grpc {
            return resource_exhausted(B::from(Bytes::new()));
        }
        let body = if denial.is_our_fault() { FAILURE_BODY } else { BODY };
        let mut response = Response::new(B::from(Bytes::from_static(body)));
        *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, json);
        response
    }
}

// === impl Grpc ===

impl<B: Default> Render<B> for Grpc {
    fn render(&self, _: &Denial<'_>) -> Response<B> {
        resource_exhausted(B::default())
    }
}

/// An answer without a message: what would be its trailers stands in its headers.
fn resource_exhausted<B>(empty: B) -> Response<B> {
    let mut response = Response::new(empty);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(GRPC_STATUS, HeaderValue::from_static("8"));
    headers.insert(GRPC_MESSAGE, HeaderValue::from_static("rate limited"));
    response
}

// === impl Custom ===

impl<F> Custom<F> {
    pub(super) fn new(respond: F) -> Self {
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

/// Turns the answer into one about the service, whatever its body says.
fn write_failure<B>(response: &mut Response<B>) {
    if response.headers().contains_key(GRPC_STATUS) {
        let headers = response.headers_mut();
        headers.insert(GRPC_STATUS, HeaderValue::from_static("13"));
        headers.insert(GRPC_MESSAGE, HeaderValue::from_static("internal error"));
    } else {
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    }
}
