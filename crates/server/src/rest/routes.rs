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
    paths: Vec<String>,
}

/// The names of paths. Axum tells a path's name only to what it has wrapped around every
/// handler, at the price of several allocations a request; asking here costs none.
#[derive(Default)]
pub(super) struct Templates(matchit::Router<String>);

impl Routes {
    /// Answers paths like `template`.
    pub(super) fn route(self, template: &str, methods: MethodRouter<Arc<Services>>) -> Self {
        let Self { router, mut paths } = self;
        let router = router.route(template, methods);
        paths.push(template.to_owned());
        Self { router, paths }
    }

    /// The paths that are answered.
    #[cfg(test)]
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(String::as_str)
    }

    pub(super) fn with(self, services: Arc<Services>) -> (TowerToHyperService<Router>, Templates) {
        let router = self
            .router
            .fallback(error::no_such_route)
            .method_not_allowed_fallback(error::no_such_method)
            .with_state(services);
        let mut templates = Templates::default();
        for path in self.paths {
            // Axum keeps its templates in the same way, and has panicked if this one is wrong.
            let _ = templates.0.insert(path.clone(), path);
        }
        (TowerToHyperService::new(router), templates)
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
