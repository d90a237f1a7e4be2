use std::{fmt, sync::Arc};

use http::Response;
use tower_layer::Layer;

use super::InFlightService;
use crate::tower::{Custom, Denial, Grpc, Guard, Standard, layer::Snapshot};

/// Middleware that limits the number of requests in flight at once, in each class with such a
/// limit: of an address or of all, in [this process](crate::Class::in_flight) or over [all
/// instances](crate::Class::shared_in_flight).
///
/// A request is in flight until its response body has ended or was dropped, as it is when the
/// connection dies. Denials are rendered by [`Standard`] by default.
#[derive(Clone)]
pub struct InFlightLayer<R = Standard> {
    snapshot: Arc<Snapshot>,
    render: R,
}

impl InFlightLayer {
    pub(in crate::tower) fn new(guard: &Guard) -> Self {
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
