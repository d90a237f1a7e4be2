use std::{fmt, sync::Arc};

use headgate_guard::{Custom, Denial, Grpc, RequestHead, Standard};
use http::Response;
use tower_layer::Layer;

use crate::{Extractors, RuleService, RuleSet, RulesError, refusals::Refusals};

/// Middleware that decides requests by rules.
///
/// All rules that match the attributes of a request must admit it. Denials are rendered by
/// [`Standard`] by default: 429, or `RESOURCE_EXHAUSTED` over gRPC, with limit headers. A request
/// without a peer address gets a 500 if its address is an attribute: see
/// [`Extractors::unknown_peers`].
///
/// ```
/// use axum::{Router, routing::get};
/// use headgate_guard_rules::{Extractors, RuleLayer, RuleSet};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let rules = RuleSet::in_memory();
/// rules.replace("- {name: all, when: {method: GET}, limit: 100, window_seconds: 1}")?;
/// let layer = RuleLayer::new(&rules, Extractors::new().method("method"))?;
/// let app: Router = Router::new().route("/", get(async || "hello")).layer(layer);
/// # drop(app);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RuleLayer<R = Standard> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) render: R,
}

pub(crate) struct Shared {
    pub(crate) rules: RuleSet,
    pub(crate) extractors: Extractors,
    pub(crate) cost: Option<Box<FindCost>>,
    pub(crate) refusals: Refusals,
}

type FindCost = dyn for<'a> Fn(&RequestHead<'a>) -> u64 + Send + Sync;

// === impl RuleLayer ===

impl RuleLayer {
    /// Decides with `rules` on the attributes that `extractors` find; each request costs 1.
    ///
    /// # Errors
    ///
    /// The name of an attribute is invalid or occurs twice, or there are more than 32.
    pub fn new(rules: &RuleSet, extractors: Extractors) -> Result<Self, RulesError> {
        extractors.validate()?;
        Ok(Self::of(rules.clone(), extractors, None))
    }

    /// Sets the cost of requests. A cost of 0 counts as 1.
    #[must_use]
    pub fn cost<F>(self, cost: F) -> Self
    where
        F: for<'a> Fn(&RequestHead<'a>) -> u64 + Send + Sync + 'static,
    {
        let Shared { rules, extractors, .. } = &*self.shared;
        Self::of(rules.clone(), extractors.clone(), Some(Box::new(cost)))
    }

    fn of(rules: RuleSet, extractors: Extractors, cost: Option<Box<FindCost>>) -> Self {
        let shared = Shared { rules, extractors, cost, refusals: Refusals::default() };
        Self { shared: Arc::new(shared), render: Standard }
    }
}

impl<R> RuleLayer<R> {
    /// Renders denials with a closure. Limit headers are added; [`Denial::class`] is the rule.
    pub fn respond_with<F, B>(self, respond: F) -> RuleLayer<Custom<F>>
    where
        F: Fn(&Denial<'_>) -> Response<B>,
    {
        RuleLayer { shared: self.shared, render: Custom::new(respond) }
    }

    /// Renders every denial for gRPC: for services whose body type is `Default`, such as tonic's.
    pub fn grpc(self) -> RuleLayer<Grpc> {
        RuleLayer { shared: self.shared, render: Grpc }
    }
}

impl<S, R: Clone> Layer<S> for RuleLayer<R> {
    type Service = RuleService<S, R>;

    fn layer(&self, inner: S) -> Self::Service {
        RuleService { inner, layer: self.clone() }
    }
}

impl<R> fmt::Debug for RuleLayer<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleLayer").field("rules", &self.shared.rules).finish_non_exhaustive()
    }
}
