//! The route table: the handler of a path, its name in metrics and logs, and the errors it answers
//! with.

use axum::{
    Router,
    extract::Request,
    http::Method,
    middleware::{Next, from_fn},
    response::IntoResponse as _,
    routing::MethodRouter,
};
use hyper_util::service::TowerToHyperService;

use super::{
    error::{self, ApiError, ErrorFormat},
    query,
    state::RestState,
};

/// Routes that share an error format.
#[derive(Default)]
pub(super) struct Routes {
    entries: Vec<(Route, MethodRouter<RestState>)>,
    /// Prefixes whose unknown paths have a format of their own.
    prefixes: Vec<(&'static str, ErrorFormat)>,
}

/// A route, as metrics, logs and errors know it.
#[derive(Clone, Debug)]
pub(super) struct Route {
    /// The template of its path.
    pub(super) template: String,
    pub(super) errors: ErrorFormat,
    /// The error of a request that takes too long.
    pub(super) on_timeout: fn() -> ApiError,
    queries: Queries,
}

/// What becomes of query parameters.
#[derive(Clone, Copy, Debug)]
enum Queries {
    /// Requests with these methods read them, and those with others refuse them: `dry_run=true`
    /// would be silently ignored.
    ReadBy(&'static [Method]),
    /// The handlers read or ignore them.
    Accepted,
}

/// Finds the route of a path. Axum tells a path's template only to layers around every handler,
/// which costs several allocations a request; a lookup here costs none.
pub(super) struct RouteTable {
    by_path: matchit::Router<Route>,
    unknown: Route,
    /// Unknown paths below these prefixes.
    unknown_below: Vec<(&'static str, Route)>,
}

// === impl Routes ===

impl Routes {
    /// Answers paths like `template`.
    pub(super) fn route(self, template: &str, methods: MethodRouter<RestState>) -> Self {
        self.slow_route(template, methods, || ApiError::TimedOut)
    }

    /// Answers paths like `template`; a request that takes too long gets another error than usual.
    pub(super) fn slow_route(
        self,
        template: &str,
        methods: MethodRouter<RestState>,
        on_timeout: fn() -> ApiError,
    ) -> Self {
        let Self { mut entries, prefixes } = self;
        let (errors, queries) = (ErrorFormat::default(), Queries::ReadBy(&[]));
        let route = Route { template: template.to_owned(), errors, on_timeout, queries };
        entries.push((route, methods));
        Self { entries, prefixes }
    }

    /// Lets requests with `methods` to the last route have query parameters.
    pub(super) fn reading_queries(mut self, methods: &'static [Method]) -> Self {
        if let Some((route, _)) = self.entries.last_mut() {
            route.queries = Queries::ReadBy(methods);
        }
        self
    }

    /// Lets all requests to the routes so far have query parameters.
    pub(super) fn accepting_queries(mut self) -> Self {
        for (route, _) in &mut self.entries {
            route.queries = Queries::Accepted;
        }
        self
    }

    /// Gives the routes so far this error format.
    pub(super) fn errors(mut self, format: ErrorFormat) -> Self {
        for (route, _) in &mut self.entries {
            route.errors = format;
        }
        self
    }

    /// Gives unknown paths at and below `prefix` this error format.
    pub(super) fn unknown_below(mut self, prefix: &'static str, format: ErrorFormat) -> Self {
        self.prefixes.push((prefix, format));
        self
    }

    /// Adds the routes of `other`.
    pub(super) fn merge(self, other: Self) -> Self {
        Self {
            entries: [self.entries, other.entries].concat(),
            prefixes: [self.prefixes, other.prefixes].concat(),
        }
    }

    /// The templates of all paths.
    #[cfg(test)]
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|(route, _)| route.template.as_str())
    }

    pub(super) fn with(self, state: RestState) -> (TowerToHyperService<Router>, RouteTable) {
        let mut router = Router::new();
        let mut by_path = matchit::Router::new();
        for (route, methods) in self.entries {
            router = router.route(&route.template, route.refusing_queries(methods));
            // Axum matches paths in the same way, and has panicked if this template is invalid.
            let _ = by_path.insert(route.template.clone(), route);
        }
        let router = router
            .fallback(error::no_such_route)
            .method_not_allowed_fallback(error::no_such_method)
            .with_state(state);
        let below = self.prefixes.into_iter();
        let table = RouteTable {
            by_path,
            unknown: Route::unknown(ErrorFormat::default()),
            unknown_below: below.map(|(at, format)| (at, Route::unknown(format))).collect(),
        };
        (TowerToHyperService::new(router), table)
    }
}

// === impl Queries ===

impl Queries {
    fn check(self, method: &Method, query: Option<&str>) -> Result<(), ApiError> {
        let (Self::ReadBy(readers), Some(query)) = (self, query) else { return Ok(()) };
        // The handlers of GET answer HEAD, too.
        let reader = if *method == Method::HEAD { &Method::GET } else { method };
        if readers.contains(reader) { Ok(()) } else { query::refuse(method, query) }
    }
}

// === impl Route ===

impl Route {
    /// The name of unknown paths in metrics and logs.
    pub(super) const UNMATCHED: &str = "unmatched";

    fn unknown(errors: ErrorFormat) -> Self {
        let (template, queries) = (Self::UNMATCHED.to_owned(), Queries::Accepted);
        Self { template, errors, on_timeout: || ApiError::TimedOut, queries }
    }

    /// Refuses query parameters that a request with `method` does not read. For the fast path; the
    /// router refuses them itself.
    pub(super) fn check_query(&self, method: &Method, query: Option<&str>) -> Result<(), ApiError> {
        self.queries.check(method, query)
    }

    /// Refuses query parameters before handlers run. Methods without a handler are a 405 in any case.
    fn refusing_queries(&self, methods: MethodRouter<RestState>) -> MethodRouter<RestState> {
        let queries = self.queries;
        if matches!(queries, Queries::Accepted) {
            return methods;
        }
        methods.route_layer(from_fn(move |request: Request, next: Next| async move {
            match queries.check(request.method(), request.uri().query()) {
                Ok(()) => next.run(request).await,
                Err(error) => error.into_response(),
            }
        }))
    }

    /// The template, unless the path is unknown.
    pub(super) fn known(&self) -> Option<&str> {
        Some(self.template.as_str()).filter(|template| *template != Self::UNMATCHED)
    }
}

// === impl RouteTable ===

impl RouteTable {
    /// The route of `path`.
    pub(super) fn find(&self, path: &str) -> &Route {
        match self.by_path.at(path) {
            Ok(found) => found.value,
            Err(_) => self.unknown(path),
        }
    }

    fn unknown(&self, path: &str) -> &Route {
        let is_below = |prefix: &str| match path.strip_prefix(prefix) {
            Some(rest) => rest.is_empty() || rest.starts_with('/'),
            None => false,
        };
        let below = self.unknown_below.iter().find(|(prefix, _)| is_below(prefix));
        below.map_or(&self.unknown, |(_, route)| route)
    }
}

#[cfg(test)]
mod tests {
    use crate::rest;

    /// After a timeout, a client would send the increment again as new, and be charged twice.
    #[test]
    fn a_late_increment_is_unconfirmed() {
        let routes = rest::routes(None, false);
        let status = |template: &str| {
            let mut routes = routes.entries.iter().map(|(route, _)| route);
            let route = routes.find(|route| route.template == template).unwrap();
            (route.on_timeout)().status().as_u16()
        };
        assert_eq!(status("/api/v1/quotas/{id}/usage/increment"), 503);
        assert_eq!(status("/api/v1/quotas/{id}/usage"), 408);
        assert_eq!(status("/api/v1/ratelimit/check"), 408);
    }
}
