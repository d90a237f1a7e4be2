//! A handler that does nothing, bare and behind each of the layers.

use std::{
    cell::RefCell,
    convert::Infallible,
    future::{Future, Ready, ready},
    hint::black_box,
    net::{IpAddr, SocketAddr},
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use axum::{Router, body::Body, extract::ConnectInfo};
use governor::middleware::NoOpMiddleware;
use headgate::Limit;
use headgate_guard::{Class, Guard, GuardLayer, Policy, Routes};
use http::{Request, Response};
use tower_governor::{
    GovernorLayer, governor::GovernorConfigBuilder, key_extractor::PeerIpKeyExtractor,
};
use tower_layer::Layer;
use tower_service::Service;

/// The layer in front of the handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entrant {
    Bare,
    Ours,
    TowerGovernor,
}

/// Does nothing, and keeps the request for the next call: creating one would cost more than the
/// layer.
#[derive(Clone, Debug)]
struct Hello;

/// A burst that is never used up.
const BURST: u32 = 4_000_000_000;

thread_local! {
    static REQUEST: RefCell<Option<Request<Body>>> = const { RefCell::new(None) };
}

impl Entrant {
    pub(crate) const ALL: [Self; 3] = [Self::Bare, Self::Ours, Self::TowerGovernor];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Ours => "headgate-guard",
            Self::TowerGovernor => "tower_governor",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|entrant| entrant.name() == name)
    }

    /// Puts the layer in front of the router.
    pub(crate) fn before(self, router: Router, layers: &Layers) -> Router {
        match self {
            Self::Bare => router,
            Self::Ours => router.layer(layers.ours.clone()),
            Self::TowerGovernor => router.layer(layers.rival.clone()),
        }
    }

    /// Sends one request from each of `clients`, `times` times over; all are admitted.
    pub(crate) fn send(self, clients: &[IpAddr], times: usize, layers: &Layers) {
        match self {
            Self::Bare => send_all(Hello, clients, times),
            Self::Ours => send_all(layers.ours.layer(Hello), clients, times),
            Self::TowerGovernor => send_all(layers.rival.layer(Hello), clients, times),
        }
    }
}

/// The layers, each with a limit by address that is never reached.
pub(crate) struct Layers {
    pub(crate) ours: GuardLayer,
    pub(crate) rival: GovernorLayer<PeerIpKeyExtractor, NoOpMiddleware, Body>,
}

impl Layers {
    pub(crate) fn new() -> Self {
        Self { ours: ours(), rival: rival() }
    }
}

fn ours() -> GuardLayer {
    let limit = Limit::token_bucket(1_000, Duration::from_secs(1)).expect("a limit");
    let enough = limit.with_burst(BURST.into()).expect("a burst");
    let class = Class::new("all").expect("a name").by_address(enough);
    let policy = Policy::new([class]).expect("a policy");
    Guard::builder(policy, Routes::all("all")).build().expect("a guard").layer()
}

fn rival() -> GovernorLayer<PeerIpKeyExtractor, NoOpMiddleware, Body> {
    let mut builder = GovernorConfigBuilder::default();
    let config = builder.per_millisecond(1).burst_size(BURST).finish();
    GovernorLayer::new(config.expect("a configuration"))
}

fn send_all<S>(mut service: S, clients: &[IpAddr], times: usize)
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    let mut context = Context::from_waker(Waker::noop());
    let mut request = Request::new(Body::empty());
    request.extensions_mut().insert(ConnectInfo(SocketAddr::from(([127, 0, 0, 1], 1))));
    for _ in 0..times {
        for client in clients {
            if let Some(info) = request.extensions_mut().get_mut::<ConnectInfo<SocketAddr>>() {
                info.0.set_ip(*client);
            }
            let answer = pin!(service.call(request)).poll(&mut context);
            let Poll::Ready(Ok(response)) = black_box(answer) else {
                panic!("the service is always ready");
            };
            assert!(response.status().is_success(), "{}", response.status());
            request = REQUEST.take().expect("the handler was reached");
        }
    }
}

// === impl Hello ===

impl Service<Request<Body>> for Hello {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        REQUEST.set(Some(request));
        ready(Ok(Response::new(Body::empty())))
    }
}
