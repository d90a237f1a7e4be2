use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use super::{Held, HeldBody, Persistence};

/// Middleware for responses that are sent before the request body is read, such as denials and
/// not-found pages. Use it as the outermost layer.
///
/// ```
/// use axum::{Router, routing::post};
/// use headgate_guard::DrainLayer;
///
/// let app: Router = Router::new().route("/", post(async || "hello")).layer(DrainLayer);
/// # drop(app);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct DrainLayer;

/// A service whose unread request bodies are drained.
#[derive(Clone, Debug)]
pub struct DrainService<S> {
    inner: S,
}

pin_project! {
    /// Response future of a [`DrainService`].
    pub struct DrainFuture<F, A, B> {
        #[pin]
        inner: F,
        held: Option<Held<A>>,
        response: Option<Response<B>>,
        draining: Option<Pin<Box<dyn Future<Output = Persistence> + Send>>>,
    }
}

impl<S> Layer<S> for DrainLayer {
    type Service = DrainService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        DrainService { inner }
    }
}

impl<S, A, B> Service<Request<A>> for DrainService<S>
where
    S: Service<Request<HeldBody<A>>, Response = Response<B>>,
    A: Body<Data: Send, Error: Send> + Unpin + Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = DrainFuture<S::Future, A, B>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let (request, held) = Held::hold(request);
        DrainFuture { inner: self.inner.call(request), held, response: None, draining: None }
    }
}

impl<F, A, B, E> Future for DrainFuture<F, A, B>
where
    F: Future<Output = Result<Response<B>, E>>,
    A: Body<Data: Send, Error: Send> + Unpin + Send + 'static,
{
    type Output = Result<Response<B>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if this.response.is_none() {
            let response = ready!(this.inner.poll(context))?;
            let Some(unread) = this.held.take().and_then(Held::unread) else {
                return Poll::Ready(Ok(response));
            };
            *this.response = Some(response);
            *this.draining = Some(Box::pin(unread.drain()));
        }
        if let Some(draining) = this.draining {
            let persistence = ready!(draining.as_mut().poll(context));
            if let Some(response) = this.response {
                persistence.write(response.headers_mut());
            }
            *this.draining = None;
        }
        match this.response.take() {
            Some(response) => Poll::Ready(Ok(response)),
            None => Poll::Pending,
        }
    }
}

impl<F, A, B> std::fmt::Debug for DrainFuture<F, A, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DrainFuture").finish_non_exhaustive()
    }
}
