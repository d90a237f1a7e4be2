//! A body that is returned when it is dropped unread.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use http::{Request, request::Parts};
use http_body::{Body, Frame, SizeHint};

use super::{UnreadBody, unread::Terms};

/// A request body that, if dropped before its end, is returned to its [`Held`].
pub struct HeldBody<B: Body + Unpin> {
    body: Option<B>,
    slot: Option<Slot<B>>,
}

/// Receives a body that was dropped before its end.
#[must_use = "a body that is dropped unread closes its connection"]
pub struct Held<B> {
    slot: Slot<B>,
    terms: Terms,
}

type Slot<B> = Arc<Mutex<Option<B>>>;

// === impl Held ===

impl<B> Held<B>
where
    B: Body<Data: Send, Error: Send> + Unpin + Send + 'static,
{
    /// Wraps the body of `request`. Returns `None` beside it if the request has no body, or if an
    /// unread body does not affect the connection.
    pub fn hold(request: Request<B>) -> (Request<HeldBody<B>>, Option<Self>) {
        let terms = Terms::of(request.version(), request.headers());
        let terms = terms.filter(|_| !request.body().is_end_stream());
        let held = terms.map(|terms| Self { slot: Slot::default(), terms });
        let slot = held.as_ref().map(|held| Arc::clone(&held.slot));
        (request.map(|body| HeldBody { body: Some(body), slot }), held)
    }

    /// The body, if it was dropped before its end.
    pub fn unread(self) -> Option<UnreadBody<B>> {
        let body = self.slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        body.map(|body| UnreadBody::on(self.terms, body))
    }
}

impl<B> fmt::Debug for Held<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").finish_non_exhaustive()
    }
}

// === impl HeldBody ===

impl<B> HeldBody<B>
where
    B: Body<Data: Send, Error: Send> + Unpin + Send + 'static,
{
    /// A body that stays with the caller: [`unread`](Self::unread) returns the rest of it.
    pub const fn owned(body: B) -> Self {
        Self { body: Some(body), slot: None }
    }

    /// The body of a request with this head, if it was not read to its end.
    pub fn unread(mut self, head: &Parts) -> Option<UnreadBody<B>> {
        UnreadBody::new(head.version, &head.headers, self.body.take()?)
    }
}

impl<B: Body + Unpin> Body for HeldBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let frame = ready!(Pin::new(body).poll_frame(context));
        if !matches!(frame, Some(Ok(_))) {
            self.body = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl<B: Body + Unpin> Drop for HeldBody<B> {
    fn drop(&mut self) {
        let unread = self.body.take().filter(|body| !body.is_end_stream());
        if let (Some(slot), Some(body)) = (&self.slot, unread) {
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(body);
        }
    }
}

impl<B: Body + Unpin> fmt::Debug for HeldBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldBody").finish_non_exhaustive()
    }
}
