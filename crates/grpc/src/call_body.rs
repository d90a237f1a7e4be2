//! Request bodies of calls. The server ends those of streams when it stops, and after too long
//! without a message.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
    time::Duration,
};

use headgate_api::Namespace;
use http::{HeaderMap, Response};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, SizeHint};
use tokio::{
    sync::{OwnedSemaphorePermit, watch},
    time::{Instant, Sleep, sleep},
};
use tonic::body::Body as ResponseBody;

use super::error::CallError;

/// Body of a request, bounded if it is that of a stream.
pub(super) struct CallBody<B> {
    body: B,
    bounds: Option<Box<Bounds>>,
    is_ended: bool,
}

/// Reason that the server has ended a stream, once it has.
#[derive(Clone, Default)]
pub(super) struct StreamEnd(Arc<OnceLock<CallError>>);

/// Bounds of a stream.
struct Bounds {
    idle: Duration,
    timer: Pin<Box<Sleep>>,
    stopping: Pin<Box<dyn Future<Output = ()> + Send>>,
    end: StreamEnd,
}

// === impl CallBody ===

impl<B> CallBody<B> {
    /// The body of a call that has a timeout as a whole.
    pub(super) const fn whole(body: B) -> Self {
        Self { body, bounds: None, is_ended: false }
    }

    /// The body of a stream, which ends after `idle` without data, and when the server stops.
    pub(super) fn stream(
        body: B,
        idle: Duration,
        mut stopping: watch::Receiver<bool>,
    ) -> (Self, StreamEnd) {
        let end = StreamEnd::default();
        let bounds = Bounds {
            idle,
            timer: Box::pin(sleep(idle)),
            stopping: Box::pin(async move {
                // An error means that the server was dropped.
                let _ = stopping.wait_for(|stopping| *stopping).await;
            }),
            end: end.clone(),
        };
        (Self { body, bounds: Some(Box::new(bounds)), is_ended: false }, end)
    }
}

impl<B: Body + Unpin> Body for CallBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        if self.is_ended {
            return Poll::Ready(None);
        }
        let polled = Pin::new(&mut self.body).poll_frame(context);
        let Some(bounds) = &mut self.bounds else {
            return polled;
        };
        if polled.is_ready() {
            bounds.timer.as_mut().reset(Instant::now() + bounds.idle);
            return polled;
        }
        if bounds.are_exceeded(context) {
            self.is_ended = true;
            return Poll::Ready(None);
        }
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        self.is_ended || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

// === impl Bounds ===

impl Bounds {
    /// Returns true if the stream has to end, and records why.
    fn are_exceeded(&mut self, context: &mut Context<'_>) -> bool {
        let reason = if self.stopping.as_mut().poll(context).is_ready() {
            CallError::Stopping
        } else if self.timer.as_mut().poll(context).is_ready() {
            CallError::Silent(self.idle)
        } else {
            return false;
        };
        // The body is not polled again.
        let _ = self.end.0.set(reason);
        true
    }
}

// === impl StreamEnd ===

impl StreamEnd {
    /// Makes the last frame of `response` say why the server has ended the stream, if it has, and
    /// holds `permit` until the response is dropped.
    pub(super) fn report(
        self,
        namespace: Namespace,
        permit: Option<OwnedSemaphorePermit>,
        response: Response<ResponseBody>,
    ) -> Response<ResponseBody> {
        response.map(|body| {
            ResponseBody::new(body.map_frame(move |frame| {
                let _held = &permit;
                match frame.into_trailers() {
                    Ok(trailers) => Frame::trailers(self.trailers(namespace).unwrap_or(trailers)),
                    Err(message) => message,
                }
            }))
        })
    }

    fn trailers(&self, namespace: Namespace) -> Option<HeaderMap> {
        let status = self.0.get()?.clone().into_status(namespace);
        let mut trailers = HeaderMap::new();
        status.add_header(&mut trailers).ok()?;
        Some(trailers)
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, future::poll_fn};

    use futures_util::{StreamExt as _, future::pending, stream};
    use http_body_util::StreamBody;
    use hyper::body::Bytes;
    use tokio::time;
    use tonic::{Code, Status};

    use super::*;

    const IDLE: Duration = Duration::from_secs(3_600);

    /// Reads a stream of a message per `interval`, and then none; returns the number of messages
    /// and the reason of its end.
    async fn read(
        interval: Duration,
        messages: usize,
        stopping: watch::Receiver<bool>,
    ) -> (usize, Status) {
        let sent = stream::iter(0..messages).then(async |_| {
            time::sleep(interval).await;
            Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"message")))
        });
        let sent = Box::pin(sent.chain(stream::once(pending())));
        let (mut body, end) = CallBody::stream(StreamBody::new(sent), IDLE, stopping);
        let mut read = 0;
        while poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await.is_some() {
            read += 1;
        }
        assert!(body.is_end_stream());
        let trailers = end.trailers(Namespace::RateLimit).expect("a reason");
        (read, Status::from_header_map(&trailers).expect("a status"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_after_too_long_without_a_message() {
        let (_stop, stopping) = watch::channel(false);
        let started = Instant::now();
        let (messages, status) = read(IDLE / 2, 5, stopping).await;
        assert_eq!(messages, 5);
        assert_eq!(started.elapsed().as_secs(), (IDLE * 7 / 2).as_secs());
        assert_eq!(status.code(), Code::DeadlineExceeded);
        let message = "the stream ended after 3600 seconds without a message: open another one";
        assert_eq!(status.message(), message);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_when_the_server_stops() {
        let (stop, stopping) = watch::channel(false);
        let reading = read(IDLE / 2, 1, stopping);
        let stopped = async {
            time::sleep(IDLE).await;
            stop.send_replace(true);
        };
        let ((messages, status), ()) = tokio::join!(reading, stopped);
        assert_eq!((messages, status.code()), (1, Code::Unavailable));
    }
}
