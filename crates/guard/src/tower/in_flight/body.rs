use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::held::PlaceHandle;
use crate::Permit;

pin_project! {
    /// Response body that keeps its request in flight.
    pub struct InFlightBody<B> {
        #[pin]
        body: B,
        permit: Option<Permit>,
        place: Option<PlaceHandle>,
    }
}

impl<B> InFlightBody<B> {
    pub(super) const fn new(body: B, permit: Option<Permit>, place: Option<PlaceHandle>) -> Self {
        Self { body, permit, place }
    }

    /// The body of a response to a request that is not in flight.
    pub(super) const fn unlimited(body: B) -> Self {
        Self::new(body, None, None)
    }
}

impl<B: Body> Body for InFlightBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        let frame = ready!(this.body.poll_frame(context));
        if frame.is_none() {
            // A body that is kept after its end does not keep the request in flight.
            *this.permit = None;
            *this.place = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> fmt::Debug for InFlightBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = self.permit.is_some() || self.place.is_some();
        f.debug_struct("InFlightBody").field("open", &open).finish_non_exhaustive()
    }
}
