use std::{fmt, sync::Arc, time::Duration};

use headgate::BatchLimiter;
use http::Response;
use tower_layer::Layer;

use super::{Estimate, OnDrop, ReserveService, service::Shared};
use crate::{
    Backend, Custom, Denial, Grpc, RequestHead, Standard,
    name::{Name, NameError},
};

/// Middleware that reserves what a request is expected to cost before its handler runs, and settles
/// for what the handler reports.
///
/// The handler puts a [`Spent`](headgate::Spent) into the extensions of its response, or a
/// [`SpentEach`](crate::SpentEach) with one for each limit; a response without one is settled for
/// the estimate. A handler that streams takes the [`ReservedUnits`](crate::ReservedUnits) from the
/// extensions of its request instead. Requests for which too few units are left are denied, as by a
/// [`GuardLayer`](crate::GuardLayer).
///
/// ```
/// use std::{convert::Infallible, time::Duration};
///
/// use headgate::{Limit, Spent};
/// use headgate_guard::{Backend, Estimate, OnDrop, RequestHead, ReserveLayer};
/// use http::{Request, Response};
/// use tower::{ServiceBuilder, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let tokens = Limit::fixed_window(1_000, Duration::from_secs(3600))?;
/// let estimate = move |request: &RequestHead<'_>| {
///     let tenant = request.headers.get("x-tenant")?.to_str().ok()?;
///     Some(Estimate::new(tenant, &tokens, 800))
/// };
/// let layer = ReserveLayer::new("completions", &Backend::memory(), OnDrop::Cancel, estimate)?;
///
/// let service = ServiceBuilder::new().layer(layer).service(service_fn(
///     async |_: Request<String>| {
///         let mut response = Response::new(axum::body::Body::from("a short answer"));
///         response.extensions_mut().insert(Spent::with_overdraft(300));
///         Ok::<_, Infallible>(response)
///     },
/// ));
/// let request = || Request::builder().header("x-tenant", "7").body(String::new());
/// // The first one reserves 800 and uses 300. 700 are left, which are too few for the next.
/// for expected in [200, 429] {
///     assert_eq!(service.clone().oneshot(request()?).await?.status(), expected);
/// }
/// # Ok(())
/// # }
/// ```
pub struct ReserveLayer<E, R = Standard> {
    shared: Arc<Shared<E>>,
    render: R,
}

impl<E> ReserveLayer<E>
where
    E: Fn(&RequestHead<'_>) -> Option<Estimate>,
{
    /// Reserves what `estimate` returns; a request for which it returns `None` is not limited.
    /// `class` names these requests in keys, headers and to the observer.
    ///
    /// # Errors
    ///
    /// If `class` is not a valid name.
    pub fn new(
        class: &str,
        backend: &Backend,
        on_drop: OnDrop,
        estimate: E,
    ) -> Result<Self, NameError> {
        let name = Name::new(class)?;
        let shared = Shared {
            prefix: backend.prefix(name.as_str(), "reserved"),
            class: name,
            limiter: BatchLimiter::new(backend.store()),
            backend: backend.clone(),
            lease: Self::DEFAULT_LEASE,
            on_drop,
            estimate,
        };
        Ok(Self { shared: Arc::new(shared), render: Standard })
    }

    /// Time after which an unused reservation returns, if the process dies.
    pub const DEFAULT_LEASE: Duration = Duration::from_secs(60);
}

impl<E, R> ReserveLayer<E, R> {
    /// Sets the time after which a reservation expires, if the process dies; default a minute. It
    /// must be longer than a handler takes, or than a stream takes between two charges.
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self
    where
        E: Clone,
    {
        let shared = Arc::new(Shared { lease, ..(*self.shared).clone() });
        Self { shared, ..self }
    }

    /// Renders denials with a closure.
    pub fn respond_with<F, B>(self, respond: F) -> ReserveLayer<E, Custom<F>>
    where
        F: Fn(&Denial<'_>) -> Response<B>,
    {
        ReserveLayer { shared: self.shared, render: Custom::new(respond) }
    }

    /// Renders every denial for gRPC: for services whose body type is `Default`, such as tonic's.
    pub fn grpc(self) -> ReserveLayer<E, Grpc> {
        ReserveLayer { shared: self.shared, render: Grpc }
    }
}

impl<S, E, R: Clone> Layer<S> for ReserveLayer<E, R> {
    type Service = ReserveService<S, E, R>;

    fn layer(&self, inner: S) -> Self::Service {
        ReserveService::new(inner, Arc::clone(&self.shared), self.render.clone())
    }
}

impl<E, R: Clone> Clone for ReserveLayer<E, R> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), render: self.render.clone() }
    }
}

impl<E, R> fmt::Debug for ReserveLayer<E, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReserveLayer")
            .field("class", &self.shared.class.as_str())
            .finish_non_exhaustive()
    }
}
