//! Which handler answers a path, and by what name the path is counted.

use std::sync::Arc;

use axum::{Router, routing::MethodRouter};
use hyper_util::service::TowerToHyperService;

use super::error;
use crate::services::Services;

/// Routes and their names.
#[derive(Default)]
pub(super) struct Routes {
    router: Router<Arc<Services>>,
    templates: Templates,
}

/// The names of paths. Axum tells a path's name only to what it has wrapped around every
/// handler, at the price of several allocations a request; asking here costs none.
#[derive(Default)]
pub(super) struct Templates(matchit::Router<String>);

impl Routes {
    /// Answers paths like `template`.
    pub(super) fn route(self, template: &str, methods: MethodRouter<Arc<Services>>) -> Self {
        let Self { router, mut templates } = self;
        let router = router.route(template, methods);
        // Axum keeps its templates in the same way, and has panicked if this one is wrong.
        let _ = templates.0.insert(template, template.to_owned());
        Self { router, templates }
    }

    pub(super) fn with(self, services: Arc<Services>) -> (TowerToHyperService<Router>, Templates) {
        let router = self
            .router
            .fallback(error::no_such_route)
            .method_not_allowed_fallback(error::no_such_method)
            .with_state(services);
        (TowerToHyperService::new(router), self.templates)
    }
}

impl Templates {
    /// The path of requests for which there is no route.
    pub(super) const UNMATCHED: &str = "unmatched";

    /// What `path` is called.
    pub(super) fn of(&self, path: &str) -> &str {
        self.0.at(path).map_or(Self::UNMATCHED, |found| found.value)
    }
}
