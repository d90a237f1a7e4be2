use std::{
    fmt,
    sync::{Arc, atomic::Ordering},
};

use http::{Extensions, Response};
use tower_layer::Layer;

use super::{
    Custom, Denial, Grpc, Guard, GuardService, Standard,
    guard::Live,
    rules::{Rule, Rules},
};

/// Middleware that limits requests: see [`Guard::layer`] and [`Guard::layer_after_auth`].
///
/// What it says to those who have to wait is [`Standard`], unless it is told otherwise. Their
/// headers are written in any case.
#[derive(Clone)]
pub struct GuardLayer<R = Standard> {
    snapshot: Arc<Snapshot>,
    stage: Stage,
    render: R,
}

/// The rules as they were when the middleware was made, which costs less to look at than those
/// in force. They are for as long as the generation is.
pub(crate) struct Snapshot {
    pub(super) live: Arc<Live>,
    pub(super) rules: Arc<Rules>,
    generation: u64,
}

/// Where the middleware stands.
#[derive(Clone)]
pub(crate) enum Stage {
    BeforeAuth,
    AfterAuth(Arc<FindSubject>),
}

pub(super) type FindSubject = dyn for<'a> Fn(&'a Extensions) -> Option<&'a str> + Send + Sync;

// === impl GuardLayer ===

impl GuardLayer {
    pub(super) fn before_auth(guard: &Guard) -> Self {
        Self { snapshot: Snapshot::of(guard), stage: Stage::BeforeAuth, render: Standard }
    }

    pub(super) fn after_auth(guard: &Guard, subject: Arc<FindSubject>) -> Self {
        Self { snapshot: Snapshot::of(guard), stage: Stage::AfterAuth(subject), render: Standard }
    }
}

impl<R> GuardLayer<R> {
    /// Says something else to those who have to wait.
    ///
    /// ```
    /// use axum::{Router, body::Body, routing::get};
    /// use headgate_guard::{Allowance, Class, Guard, Policy, Routes};
    /// use http::{Response, StatusCode};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let public = Class::new("public")?.by_address(Allowance::per_minute(120)?);
    /// let guard = Guard::builder(Policy::new([public])?, Routes::all("public")).build()?;
    ///
    /// let layer = guard.layer().respond_with(|denial| {
    ///     let secs = denial.denied().retry_after_secs();
    ///     let mut response = Response::new(Body::from(format!("retry in {secs} s")));
    ///     *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    ///     response
    /// });
    /// let app: Router = Router::new().route("/", get(async || "hello")).layer(layer);
    /// # drop(app);
    /// # Ok(())
    /// # }
    /// ```
    pub fn respond_with<F, B>(self, respond: F) -> GuardLayer<Custom<F>>
    where
        F: Fn(&Denial<'_>) -> Response<B>,
    {
        self.with(Custom::new(respond))
    }

    /// Speaks gRPC alone, to services whose bodies are made from nothing, such as tonic's own.
    pub fn grpc(self) -> GuardLayer<Grpc> {
        self.with(Grpc)
    }

    fn with<Q>(self, render: Q) -> GuardLayer<Q> {
        GuardLayer { snapshot: self.snapshot, stage: self.stage, render }
    }
}

impl<S, R: Clone> Layer<S> for GuardLayer<R> {
    type Service = GuardService<S, R>;

    fn layer(&self, inner: S) -> Self::Service {
        let (snapshot, stage) = (Arc::clone(&self.snapshot), self.stage.clone());
        GuardService { inner, snapshot, stage, render: self.render.clone() }
    }
}

impl<R> fmt::Debug for GuardLayer<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardLayer").finish_non_exhaustive()
    }
}

// === impl Stage ===

impl Stage {
    /// Whether this stage counts requests under `rule` by address.
    pub(super) const fn counts_addresses(&self, rule: &Rule) -> bool {
        match self {
            Self::BeforeAuth => rule.by_address.is_some(),
            Self::AfterAuth(_) => rule.by_address_after_auth.is_some(),
        }
    }
}

// === impl Snapshot ===

impl Snapshot {
    pub(super) fn of(guard: &Guard) -> Arc<Self> {
        let live = Arc::clone(&guard.0);
        // The number first: rules that are replaced in between are then seen to be newer.
        let generation = live.generation.load(Ordering::Acquire);
        let rules = live.rules.load_full();
        Arc::new(Self { live, rules, generation })
    }

    /// Calls `f` with the rules in force.
    #[inline]
    pub(super) fn with_rules<T>(&self, f: impl FnOnce(&Arc<Rules>) -> T) -> T {
        if self.live.generation.load(Ordering::Acquire) == self.generation {
            f(&self.rules)
        } else {
            f(&self.live.rules.load())
        }
    }
}
