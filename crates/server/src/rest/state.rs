//! The use cases that handlers ask for, each by its own type: `State(quotas):
//! State<Arc<QuotaServices>>`.

use std::sync::Arc;

use axum::extract::FromRef;
use headgate_api::{
    Access, Operations,
    quotas::QuotaServices,
    rate_limits::{MeteredChecks, RuleAdmin},
};
use headgate_console::Console;
use headgate_events::Events;
use headgate_service_config::ServiceConfigRepository;

use super::keyed::KeyedApi;
use crate::reload::Reloader;

/// Everything that handlers can ask for.
pub(crate) struct UseCases {
    pub(crate) checks: Arc<MeteredChecks>,
    pub(crate) keyed: Arc<KeyedApi>,
    pub(crate) rules: Arc<RuleAdmin>,
    pub(crate) quotas: Arc<QuotaServices>,
    pub(crate) events: Events,
    /// The documents of services that embed the guard.
    pub(crate) documents: Arc<dyn ServiceConfigRepository>,
    pub(crate) access: Arc<Access>,
    pub(crate) console: Arc<Console>,
    pub(crate) operations: Arc<Operations>,
    pub(crate) reloader: Arc<Reloader>,
}

/// The router's state: axum clones it for each request, so it is one pointer.
#[derive(Clone)]
pub(super) struct RestState(Arc<UseCases>);

impl From<Arc<UseCases>> for RestState {
    fn from(use_cases: Arc<UseCases>) -> Self {
        Self(use_cases)
    }
}

macro_rules! provides {
    ($($field:ident: $type:ty),+ $(,)?) => {
        $(impl FromRef<RestState> for $type {
            fn from_ref(state: &RestState) -> Self {
                state.0.$field.clone()
            }
        })+
    };
}

provides! {
    checks: Arc<MeteredChecks>,
    keyed: Arc<KeyedApi>,
    rules: Arc<RuleAdmin>,
    quotas: Arc<QuotaServices>,
    events: Events,
    documents: Arc<dyn ServiceConfigRepository>,
    access: Arc<Access>,
    console: Arc<Console>,
    operations: Arc<Operations>,
    reloader: Arc<Reloader>,
}
