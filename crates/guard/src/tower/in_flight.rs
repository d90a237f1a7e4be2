//! Limits on requests in flight.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use super::{Custom, Denial, Grpc, Guard, Render, Standard, layer::Snapshot, service::surface};
use crate::{Busy, Permit, Reason, UnreadBody, backend::UNKNOWN_WAIT, decider::Rejection};

/// Middleware that limits the number of requests of an address in flight at once, in each class
/// with such a limit: see [`Class::in_flight`](crate::Class::in_flight).
///
/// A request is in flight until its response body has ended or was dropped, as it is when the
/// connection dies. Denials are rendered by [`Standard`] by default.
#[derive(Clone)]
pub struct InFlightLayer<R = Standard> {
    snapshot: Arc<Snapshot>,
    render: R,
}

/// A service whose requests in flight are limited.
#[derive(Clone)]
pub struct InFlightService<S, R = Standard> {
    inner: S,
    snapshot: Arc<Snapshot>,
    render: R,
}

pin_project! {
    /// Response future of an [`InFlightService`].
    pub struct InFlightFuture<F, B> {
        #[pin]
        state: State<F, B>,
    }
}

pin_project! {
    #[project = Projected]
    enum State<F, B> {
        Inner { #[pin] future: F, permit: Option<Permit> },
        Denied { response: Option<Box<Response<B>>> },
        Draining { future: Pin<Box<dyn Future<Output = Response<B>> + Send>> },
    }
}

pin_project! {
    /// Response body that keeps its request in flight.
    pub struct InFlightBody<B> {
        #[pin]
        body: B,
        permit: Option<Permit>,
    }
}

// === impl InFlightLayer ===

impl InFlightLayer {
    pub(super) fn new(guard: &Guard) -> Self {
        Self { snapshot: Snapshot::of(guard), render: Standard }
    }
}

impl<R> InFlightLayer<R> {
    /// Renders denials with a closure.
    pub fn respond_with<F, B>(self, respond: F) -> InFlightLayer<Custom<F>>
    where
        F: Fn(&Denial<'_>) -> Response<B>,
    {
        InFlightLayer { snapshot: self.snapshot, render: Custom::new(respond) }
    }

    /// Renders every denial for gRPC: for services whose body type is `Default`, such as tonic's.
    pub fn grpc(self) -> InFlightLayer<Grpc> {
        InFlightLayer { snapshot: self.snapshot, render: Grpc }
    }
}

impl<S, R: Clone> Layer<S> for InFlightLayer<R> {
    type Service = InFlightService<S, R>;

    fn layer(&self, inner: S) -> Self::Service {
        let (snapshot, render) = (Arc::clone(&self.snapshot), self.render.clone());
        InFlightService { inner, snapshot, render }
    }
}

impl<R> fmt::Debug for InFlightLayer<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlightLayer").finish_non_exhaustive()
    }
}

// === impl InFlightService ===

impl<S, R, A, B> Service<Request<A>> for InFlightService<S, R>
where
    S: Service<Request<A>, Response = Response<B>>,
    R: Render<B>,
    A: Body<Data: Send, Error: Send> + Send + 'static,
    B: Send + 'static,
{
    type Response = Response<InFlightBody<B>>;
    type Error = S::Error;
    type Future = InFlightFuture<S::Future, B>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let state = match self.open(&request) {
            Ok(permit) => State::Inner { future: self.inner.call(request), permit },
            Err(response) => State::refused(request, response),
        };
        InFlightFuture { state }
    }
}

impl<S, R> InFlightService<S, R> {
    /// Returns a permit, `None` if the class has no such limit, or the response of a denial.
    fn open<A, B>(&self, request: &Request<A>) -> Result<Option<Permit>, Box<Response<B>>>
    where
        R: Render<B>,
    {
        let shared = &*self.snapshot.shared;
        self.snapshot.with_policy(|policy| {
            let Some((_, class)) = policy.class_of(request) else {
                return Ok(None);
            };
            let Some(in_flight) = &class.in_flight else {
                return Ok(None);
            };
            let opened = match shared.counted_client(request) {
                Some(client) => {
                    let key = shared.decider.backend().address_key("", client);
                    let opened = in_flight.counts.acquire(&*key, in_flight.limits);
                    opened.map_err(|busy| Rejection::new(busy.reason(), UNKNOWN_WAIT))
                }
                None => Err(shared.reject_unknown_peer()),
            };
            opened.map(Some).map_err(|rejection| {
                let denied = shared.denied(surface(request), class, rejection);
                Box::new(Denial::new(class.name(), denied).respond(&self.render))
            })
        })
    }
}

impl<S: fmt::Debug, R> fmt::Debug for InFlightService<S, R> {
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

// === impl State ===

impl<F, B: Send + 'static> State<F, B> {
    /// Responds to a request whose body has not been read.
    fn refused<A>(request: Request<A>, mut response: Box<Response<B>>) -> Self
    where
        A: Body<Data: Send, Error: Send> + Send + 'static,
    {
        let (head, body) = request.into_parts();
        let Some(unread) = UnreadBody::new(head.version, &head.headers, body) else {
            return Self::Denied { response: Some(response) };
        };
        let future = Box::pin(async move {
            unread.drain().await.write(response.headers_mut());
            *response
        });
        Self::Draining { future }
    }
}

// === impl InFlightFuture ===

impl<F, B, E> Future for InFlightFuture<F, B>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = Result<Response<InFlightBody<B>>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            Projected::Inner { future, permit } => {
                let response = ready!(future.poll(context))?;
                let permit = permit.take();
                Poll::Ready(Ok(response.map(|body| InFlightBody { body, permit })))
            }
            Projected::Denied { response } => match response.take() {
                Some(response) => {
                    Poll::Ready(Ok(response.map(|body| InFlightBody { body, permit: None })))
                }
                None => Poll::Pending,
            },
            Projected::Draining { future } => {
                let response = ready!(future.as_mut().poll(context));
                Poll::Ready(Ok(response.map(|body| InFlightBody { body, permit: None })))
            }
        }
    }
}

impl<F, B> fmt::Debug for InFlightFuture<F, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlightFuture").finish_non_exhaustive()
    }
}

// === impl InFlightBody ===

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
        f.debug_struct("InFlightBody").field("open", &self.permit.is_some()).finish_non_exhaustive()
    }
}
