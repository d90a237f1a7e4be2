//! How many requests a client has open, until their answers have ended.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use super::{Denial, Guard, Standard, layer::Snapshot, service::surface};
use crate::{AddressKey, Busy, Permit, Reason, backend::UNKNOWN_WAIT, judge::Refusal};

/// Middleware that limits how many requests of an address are open at once, in each class that
/// says so: see [`Class::in_flight`](crate::Class::in_flight).
///
/// A request is open until its answer's body has ended or was dropped, as it is when the
/// connection dies.
#[derive(Clone)]
pub struct InFlightLayer(Arc<Snapshot>);

/// A service whose open requests are limited.
#[derive(Clone)]
pub struct InFlightService<S> {
    inner: S,
    snapshot: Arc<Snapshot>,
}

pin_project! {
    /// The answer of an [`InFlightService`].
    pub struct InFlightFuture<F> {
        #[pin]
        state: State<F>,
    }
}

pin_project! {
    #[project = Projected]
    enum State<F> {
        Inner { #[pin] future: F, permit: Option<Permit> },
        Denied { response: Option<Box<Response<Bytes>>> },
    }
}

pin_project! {
    /// The body of an answer, which holds its request open.
    pub struct InFlightBody<B> {
        #[pin]
        content: Content<B>,
        permit: Option<Permit>,
    }
}

pin_project! {
    #[project = ProjectedContent]
    enum Content<B> {
        Inner { #[pin] body: B },
        Fixed { bytes: Option<Bytes> },
    }
}

// === impl InFlightLayer ===

impl InFlightLayer {
    pub(super) fn new(guard: &Guard) -> Self {
        Self(Snapshot::of(guard))
    }
}

impl<S> Layer<S> for InFlightLayer {
    type Service = InFlightService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        InFlightService { inner, snapshot: Arc::clone(&self.0) }
    }
}

impl fmt::Debug for InFlightLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlightLayer").finish_non_exhaustive()
    }
}

// === impl InFlightService ===

impl<S, A, B> Service<Request<A>> for InFlightService<S>
where
    S: Service<Request<A>, Response = Response<B>>,
{
    type Response = Response<InFlightBody<B>>;
    type Error = S::Error;
    type Future = InFlightFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let state = match self.open(&request) {
            Ok(permit) => State::Inner { future: self.inner.call(request), permit },
            Err(response) => State::Denied { response: Some(response) },
        };
        InFlightFuture { state }
    }
}

impl<S> InFlightService<S> {
    /// A permit, or nothing where nothing is limited, or else what is said to who has to wait.
    fn open<A>(&self, request: &Request<A>) -> Result<Option<Permit>, Box<Response<Bytes>>> {
        let live = &*self.snapshot.live;
        self.snapshot.with_rules(|rules| {
            let Some((_, rule)) = rules.rule_for(request) else {
                return Ok(None);
            };
            let Some(in_flight) = &rule.in_flight else {
                return Ok(None);
            };
            let key = AddressKey::of(live.client_or_nowhere(request));
            in_flight.open.acquire(&*key, in_flight.limits).map(Some).map_err(|busy| {
                let refusal = Refusal::new(busy.reason(), UNKNOWN_WAIT);
                let denied = live.denied(surface(request), rule, refusal);
                Box::new(Denial::new(rule.name(), denied).respond(&Standard))
            })
        })
    }
}

impl<S: fmt::Debug> fmt::Debug for InFlightService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlightService").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl Busy {
    pub(crate) const fn reason(self) -> Reason {
        match self {
            Self::PerKey(_) => Reason::InFlight,
            Self::Total(_) => Reason::Capacity,
        }
    }
}

// === impl InFlightFuture ===

impl<F, B, E> Future for InFlightFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = Result<Response<InFlightBody<B>>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            Projected::Inner { future, permit } => {
                let response = ready!(future.poll(context))?;
                let permit = permit.take();
                let hold = |body| InFlightBody { content: Content::Inner { body }, permit };
                Poll::Ready(Ok(response.map(hold)))
            }
            Projected::Denied { response } => match response.take() {
                Some(response) => Poll::Ready(Ok(response.map(InFlightBody::fixed))),
                None => Poll::Pending,
            },
        }
    }
}

impl<F> fmt::Debug for InFlightFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlightFuture").finish_non_exhaustive()
    }
}

// === impl InFlightBody ===

impl<B> InFlightBody<B> {
    fn fixed(bytes: Bytes) -> Self {
        let bytes = Some(bytes).filter(|bytes| !bytes.is_empty());
        Self { content: Content::Fixed { bytes }, permit: None }
    }
}

impl<B: Body<Data = Bytes>> Body for InFlightBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        match this.content.project() {
            ProjectedContent::Inner { body } => {
                let frame = ready!(body.poll_frame(context));
                if frame.is_none() {
                    // Who keeps the body for longer than it lasts does not keep the request open.
                    *this.permit = None;
                }
                Poll::Ready(frame)
            }
            ProjectedContent::Fixed { bytes } => {
                Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Inner { body } => body.is_end_stream(),
            Content::Fixed { bytes } => bytes.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Inner { body } => body.size_hint(),
            Content::Fixed { bytes } => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
        }
    }
}

impl<B> fmt::Debug for InFlightBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlightBody").field("open", &self.permit.is_some()).finish_non_exhaustive()
    }
}
