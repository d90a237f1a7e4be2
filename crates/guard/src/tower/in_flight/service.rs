use std::{
    fmt, mem,
    net::IpAddr,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use super::{InFlightBody, InFlightFuture, Places};
use crate::{
    Busy, Permit, Reason, UnreadBody,
    backend::UNKNOWN_WAIT,
    decider::Rejection,
    tower::{
        Denial, Render, Standard,
        compiled::CompiledClass,
        layer::Snapshot,
        service::surface,
        shared::{Shared, UNKNOWN_ADDRESS},
    },
};

/// A service whose requests in flight are limited.
#[derive(Clone)]
pub struct InFlightService<S, R = Standard> {
    pub(super) inner: S,
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) render: R,
}

/// What a request needs to be in flight.
#[derive(Default)]
struct Opened {
    /// Taken in this process, if the class has such a limit.
    permit: Option<Permit>,
    /// To be taken in the store, if the class has such limits.
    place: Option<(Arc<Places>, IpAddr)>,
}

// === impl InFlightService ===

impl<S, R, A, B> Service<Request<A>> for InFlightService<S, R>
where
    S: Service<Request<A>, Response = Response<B>, Future: Send> + Clone + Send + 'static,
    R: Render<B> + Clone + Send + 'static,
    A: Body<Data: Send, Error: Send> + Send + 'static,
    B: Send + 'static,
{
    type Response = Response<InFlightBody<B>>;
    type Error = S::Error;
    type Future = InFlightFuture<S::Future, B, S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        match self.open(&request) {
            Ok(Opened { permit, place: None }) => {
                InFlightFuture::inner(self.inner.call(request), permit)
            }
            Ok(Opened { permit, place: Some((places, address)) }) => {
                let clone = self.inner.clone();
                // The service that was polled ready takes the request.
                let inner = mem::replace(&mut self.inner, clone);
                let service = Self { inner, ..self.clone() };
                let response = service.acquire_then_call(request, permit, places, address);
                InFlightFuture::waiting(response)
            }
            Err(response) => InFlightFuture::refused(request, response),
        }
    }
}

impl<S, R> InFlightService<S, R> {
    /// Takes what is taken in this process, or returns the response of a denial.
    fn open<A, B>(&self, request: &Request<A>) -> Result<Opened, Box<Response<B>>>
    where
        R: Render<B>,
    {
        let shared = &*self.snapshot.shared;
        self.snapshot.with_policy(|policy| {
            let Some((_, class)) = policy.class_of(request) else {
                return Ok(Opened::default());
            };
            if class.in_flight.is_none() && class.shared_in_flight.is_none() {
                return Ok(Opened::default());
            }
            Opened::new(shared, class, request).map_err(|rejection| {
                let denied = shared.denied(surface(request), class, rejection);
                Box::new(Denial::new(class.name(), denied).respond(&self.render))
            })
        })
    }

    /// Takes a place in the store, and then calls the service.
    async fn acquire_then_call<A, B>(
        mut self,
        request: Request<A>,
        permit: Option<Permit>,
        places: Arc<Places>,
        address: IpAddr,
    ) -> Result<Response<InFlightBody<B>>, S::Error>
    where
        S: Service<Request<A>, Response = Response<B>>,
        R: Render<B>,
        A: Body<Data: Send, Error: Send> + Send + 'static,
    {
        let keeper = &self.snapshot.shared.keeper;
        match keeper.acquire(&places, address).await {
            Ok(place) => {
                let response = self.inner.call(request).await?;
                Ok(response.map(|body| InFlightBody::new(body, permit, place)))
            }
            Err(rejection) => {
                drop(permit);
                let backend = self.snapshot.shared.decider.backend();
                let denied = backend.rejected(places.class(), rejection.at(surface(&request)));
                let mut response = Denial::new(places.class(), denied).respond(&self.render);
                let (head, body) = request.into_parts();
                if let Some(unread) = UnreadBody::new(head.version, &head.headers, body) {
                    unread.drain().await.write(response.headers_mut());
                }
                Ok(response.map(InFlightBody::unlimited))
            }
        }
    }
}

impl<S: fmt::Debug, R> fmt::Debug for InFlightService<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlightService").field("inner", &self.inner).finish_non_exhaustive()
    }
}

// === impl Opened ===

impl Opened {
    fn new<A>(
        shared: &Shared,
        class: &CompiledClass,
        request: &Request<A>,
    ) -> Result<Self, Rejection> {
        let places = class.shared_in_flight.as_ref();
        let address = match shared.counted_client(request) {
            Some(address) => address,
            // Not needed: this class limits only all clients together.
            None if class.in_flight.is_none() && !places.is_some_and(|it| it.count_clients()) => {
                UNKNOWN_ADDRESS
            }
            None => return Err(shared.reject_unknown_peer()),
        };
        let permit = match &class.in_flight {
            Some(in_flight) => {
                let key = shared.decider.backend().address_key("", address);
                let opened = in_flight.counts.acquire(&*key, in_flight.limits);
                Some(opened.map_err(|busy| Rejection::new(busy.reason(), UNKNOWN_WAIT))?)
            }
            None => None,
        };
        Ok(Self { permit, place: places.map(|places| (Arc::clone(places), address)) })
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
