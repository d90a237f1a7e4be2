use std::{
    fmt,
    future::Future,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use headgate::{BatchLimiter, Decision, KeySpace, ReserveError, Spent};
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;
use tracing::warn;

use super::{Estimate, OnDrop, ReservedUnits, SpentEach};
use crate::{
    Backend, Denial, Denied, Reason, Render, RequestHead, Standard, Surface, UnreadBody,
    backend::UNKNOWN_WAIT, name::Name, tower::service::surface,
};

/// A service whose requests are reserved before, and settled afterwards.
pub struct ReserveService<S, E, R = Standard> {
    inner: S,
    shared: Arc<Shared<E>>,
    render: R,
}

/// What the services of a layer share.
#[derive(Clone)]
pub(super) struct Shared<E> {
    pub(super) class: Name,
    pub(super) prefix: Box<str>,
    pub(super) limiter: BatchLimiter,
    pub(super) backend: Backend,
    pub(super) lease: Duration,
    pub(super) on_drop: OnDrop,
    pub(super) estimate: E,
}

// === impl ReserveService ===

impl<S, E, R> ReserveService<S, E, R> {
    pub(super) const fn new(inner: S, shared: Arc<Shared<E>>, render: R) -> Self {
        Self { inner, shared, render }
    }
}

impl<S, E, R, A, B> Service<Request<A>> for ReserveService<S, E, R>
where
    S: Service<Request<A>, Response = Response<B>, Future: Send> + Clone + Send + 'static,
    E: Fn(&RequestHead<'_>) -> Option<Estimate> + Send + Sync + 'static,
    R: Render<B> + Clone + Send + Sync + 'static,
    A: Body<Data: Send, Error: Send> + Send + 'static,
    B: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<A>) -> Self::Future {
        let head = RequestHead {
            method: request.method(),
            uri: request.uri(),
            headers: request.headers(),
            extensions: request.extensions(),
        };
        let estimate = (self.shared.estimate)(&head);
        // The clone is not ready; the one that is takes the call.
        let clone = self.inner.clone();
        let mut inner = mem::replace(&mut self.inner, clone);
        let Some(estimate) = estimate else {
            return Box::pin(inner.call(request));
        };
        let (shared, render) = (Arc::clone(&self.shared), self.render.clone());
        Box::pin(async move {
            let units = match shared.reserve(&estimate, surface(&request)).await {
                Ok(units) => units,
                Err(denied) => return Ok(refuse(&shared, denied, &render, request).await),
            };
            let Some(units) = units else {
                return inner.call(request).await;
            };
            request.extensions_mut().insert(units.clone());
            let mut response = inner.call(request).await?;
            settle(units, &mut response).await;
            Ok(response)
        })
    }
}

impl<S: Clone, E, R: Clone> Clone for ReserveService<S, E, R> {
    fn clone(&self) -> Self {
        let (inner, render) = (self.inner.clone(), self.render.clone());
        Self { inner, shared: Arc::clone(&self.shared), render }
    }
}

impl<S: fmt::Debug, E, R> fmt::Debug for ReserveService<S, E, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReserveService").field("inner", &self.inner).finish_non_exhaustive()
    }
}

// === impl Shared ===

impl<E> Shared<E> {
    /// Reserves the estimate, or returns the denial.
    async fn reserve(
        &self,
        estimate: &Estimate,
        surface: Surface,
    ) -> Result<Option<ReservedUnits>, Denied> {
        let space = KeySpace::new(&self.prefix, "");
        let Some(batch) = estimate.batch(&space, self.backend.mode()) else {
            return Ok(None);
        };
        let result = self.limiter.reserve(&batch, self.lease).await;
        self.backend.report_reserved(&result);
        match result {
            Ok((reservation, _)) => {
                let (limiter, lease) = (self.limiter.clone(), self.lease);
                Ok(Some(ReservedUnits::new(limiter, reservation, lease, self.on_drop)))
            }
            Err(ReserveError::Denied(decision)) => {
                let window_secs = estimate.window_secs(decision.decided_by);
                Err(self.denied(surface, Some(decision), window_secs))
            }
            Err(error) => {
                // Failures of the store are reported above, at a limited rate.
                if !matches!(error, ReserveError::Store(_)) {
                    warn!(%error, "failed to reserve");
                }
                if self.backend.admits_without_store() {
                    return Ok(None);
                }
                Err(self.denied(surface, None, 0))
            }
        }
    }

    fn denied(&self, surface: Surface, decision: Option<Decision>, window_secs: u64) -> Denied {
        let retry_after = decision.map_or(UNKNOWN_WAIT, |decision| decision.retry_after);
        let reason = Reason::Key;
        let denied = Denied { surface, reason, retry_after, decision, window_secs };
        self.backend.rejected(self.class.as_str(), denied)
    }
}

/// Settles for what the handler reports, or else for the estimate.
async fn settle<B>(units: ReservedUnits, response: &mut Response<B>) {
    let extensions = response.extensions_mut();
    let settled = if let Some(spent) = extensions.remove::<Spent>() {
        units.settle(spent).await
    } else if let Some(SpentEach(spent)) = extensions.remove() {
        units.settle_each(&spent).await
    } else {
        return units.keep().await;
    };
    if let Err(error) = settled {
        warn!(%error, "failed to settle a reservation");
    }
}

/// Responds to a denied request, whose body has not been read.
async fn refuse<E, R, A, B>(
    shared: &Shared<E>,
    denied: Denied,
    render: &R,
    request: Request<A>,
) -> Response<B>
where
    R: Render<B>,
    A: Body<Data: Send, Error: Send> + Send + 'static,
{
    let mut response = Denial::new(shared.class.as_str(), denied).respond(render);
    let (head, body) = request.into_parts();
    if let Some(unread) = UnreadBody::new(head.version, &head.headers, body) {
        unread.drain().await.write(response.headers_mut());
    }
    response
}
