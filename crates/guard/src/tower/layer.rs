use std::{
    fmt,
    sync::{Arc, atomic::Ordering},
};

use http::{Extensions, Response};
use tower_layer::Layer;

use super::{
    Custom, Denial, Grpc, Guard, GuardService, KeyExtractor, MissingKey, Standard,
    compiled::{CompiledClass, CompiledPolicy},
    direct::DirectLimit,
    shared::Shared,
};

/// Middleware that limits requests: see [`Guard::layer`], [`Guard::layer_after_auth`] and
/// [`Guard::layer_by_key`].
///
/// Denials are rendered by [`Standard`] by default. Limit headers are added to any rendering.
#[derive(Clone)]
pub struct GuardLayer<R = Standard> {
    snapshot: Arc<Snapshot>,
    stage: Stage,
    render: R,
}

/// The policy as it was when the middleware was created: cheaper to read than the shared one, and
/// valid while the generation is the same.
pub(crate) struct Snapshot {
    pub(super) shared: Arc<Shared>,
    policy: Arc<CompiledPolicy>,
    direct: Option<DirectLimit>,
    generation: u64,
}

/// The limits that the middleware applies.
#[derive(Clone)]
pub(crate) enum Stage {
    BeforeAuth,
    AfterAuth(Arc<FindSubject>),
    ByKey(Arc<KeyExtractor>, MissingKey),
}

pub(super) type FindSubject = dyn for<'a> Fn(&'a Extensions) -> Option<&'a str> + Send + Sync;

// === impl GuardLayer ===

impl GuardLayer {
    pub(super) fn before_auth(guard: &Guard) -> Self {
        Self::new(guard, Stage::BeforeAuth)
    }

    pub(super) fn after_auth(guard: &Guard, subject: Arc<FindSubject>) -> Self {
        Self::new(guard, Stage::AfterAuth(subject))
    }

    pub(super) fn by_key(guard: &Guard, extractor: KeyExtractor, missing: MissingKey) -> Self {
        Self::new(guard, Stage::ByKey(Arc::new(extractor), missing))
    }

    fn new(guard: &Guard, stage: Stage) -> Self {
        Self { snapshot: Snapshot::of(guard), stage, render: Standard }
    }
}

impl<R> GuardLayer<R> {
    /// Renders denials with a closure.
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

    /// Renders every denial for gRPC: for services whose body type is `Default`, such as tonic's.
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
    /// Returns `true` if the middleware counts requests of `class` by address.
    pub(super) const fn counts_addresses(&self, class: &CompiledClass) -> bool {
        match self {
            Self::BeforeAuth => class.by_address.is_some(),
            Self::AfterAuth(_) => class.by_address_after_auth.is_some(),
            Self::ByKey(..) => false,
        }
    }
}

// === impl Snapshot ===

impl Snapshot {
    pub(super) fn of(guard: &Guard) -> Arc<Self> {
        let shared = Arc::clone(&guard.0);
        // Load the generation first, so that a policy that is replaced in between is detected as
        // newer.
        let generation = shared.generation.load(Ordering::Acquire);
        let policy = shared.policy.load_full();
        let direct = DirectLimit::of(&shared, &policy);
        Arc::new(Self { shared, policy, direct, generation })
    }

    /// The limit of every request before authentication, if the policy in force is that simple.
    #[inline]
    pub(super) fn direct(&self) -> Option<&DirectLimit> {
        self.direct.as_ref().filter(|_| self.is_in_force())
    }

    /// Calls `f` with the policy in force.
    #[inline]
    pub(super) fn with_policy<T>(&self, f: impl FnOnce(&Arc<CompiledPolicy>) -> T) -> T {
        if self.is_in_force() { f(&self.policy) } else { f(&self.shared.policy.load()) }
    }

    #[inline]
    fn is_in_force(&self) -> bool {
        self.shared.generation.load(Ordering::Acquire) == self.generation
    }
}
