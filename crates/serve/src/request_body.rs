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
}

// === impl RequestBody ===

impl RequestBody {
    pub(crate) const fn new(body: Incoming, activity: Arc<Activity>) -> Self {
        Self { body, activity, counted: 0 }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
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
        if self.counted > 0 {
            self.activity.release(self.counted);
        }
    }
}
