//! Request bodies whose bytes are counted while they arrive.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use crate::activity::Activity;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Body of a request. Its bytes are counted until it is complete or dropped, so that a peer that
/// sends many requests slowly cannot exceed the bounds.
pub struct RequestBody {
    body: Incoming,
    activity: Arc<Activity>,
    counted: usize,
    /// Whether its reader waits for the next bytes.
    is_awaited: bool,
}

// === impl RequestBody ===

impl RequestBody {
    pub(crate) const fn new(body: Incoming, activity: Arc<Activity>) -> Self {
        Self { body, activity, counted: 0, is_awaited: false }
    }

    fn set_awaited(&mut self, is_awaited: bool) {
        if self.is_awaited != is_awaited {
            self.is_awaited = is_awaited;
            self.activity.set_awaiting_body(is_awaited);
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        self.set_awaited(polled.is_pending());
        let frame = match ready!(polled) {
            None => return Poll::Ready(None),
            Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
            Some(Ok(frame)) => frame,
        };
        // Most bodies are complete with their first chunk.
        if let Some(part) = frame.data_ref().filter(|_| !self.body.is_end_stream()) {
            self.counted += part.len();
            if self.activity.receive(part.len()).is_err() {
                return Poll::Ready(Some(Err("too many incomplete requests".into())));
            }
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        self.set_awaited(false);
        if self.counted > 0 {
            self.activity.release(self.counted);
        }
    }
}
