//! Response bodies whose bytes are counted until the peer has read them.

use std::{
    io::IoSlice,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Buf;
use h2::Reason;
use hyper::body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::activity::{InFlightRequest, OpenResponse, UnsentBytes};

/// Largest response that is not counted over HTTP/1, which sends one at a time.
const SMALL_BYTES: u64 = 16 * 1024;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

pin_project! {
    /// Body of a response.
    pub struct ResponseBody<B> {
        #[pin]
        body: B,
        open: Option<OpenResponse>,
    }
}

/// A chunk of a response.
pub struct CountedData<D> {
    data: D,
    unsent: Option<UnsentBytes>,
}

// === impl ResponseBody ===

impl<B: Body> ResponseBody<B> {
    pub(crate) fn new(body: B, request: InFlightRequest, is_http2: bool) -> Self {
        let is_small = body.size_hint().exact().is_some_and(|bytes| bytes <= SMALL_BYTES);
        let open = if is_small && !is_http2 || body.is_end_stream() {
            request.finish();
            None
        } else {
            request.open_response()
        };
        Self { body, open }
    }
}

impl<B: Body<Error: Into<BoxError>>> Body for ResponseBody<B> {
    type Data = CountedData<B::Data>;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, BoxError>>> {
        let this = self.project();
        let frame = match ready!(this.body.poll_frame(context)) {
            None => return Poll::Ready(None),
            Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
            Some(Ok(frame)) => frame,
        };
        let unsent = match (this.open.as_ref(), frame.data_ref()) {
            (Some(open), Some(data)) => {
                let Ok(unsent) = open.send(data.remaining()) else {
                    // The error code of the HTTP/2 stream.
                    let calm = h2::Error::from(Reason::ENHANCE_YOUR_CALM);
                    return Poll::Ready(Some(Err(calm.into())));
                };
                Some(unsent)
            }
            _ => None,
        };
        Poll::Ready(Some(Ok(frame.map_data(|data| CountedData { data, unsent }))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

// === impl CountedData ===

impl<D: Buf> Buf for CountedData<D> {
    fn remaining(&self) -> usize {
        self.data.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.data.chunk()
    }

    fn chunks_vectored<'a>(&'a self, into: &mut [IoSlice<'a>]) -> usize {
        self.data.chunks_vectored(into)
    }

    fn advance(&mut self, bytes: usize) {
        self.data.advance(bytes);
        if let Some(unsent) = &mut self.unsent {
            unsent.take(bytes);
        }
    }
}
