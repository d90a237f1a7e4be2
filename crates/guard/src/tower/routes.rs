//! Classification of requests.

use std::{fmt, sync::Arc};

use http::{Extensions, HeaderMap, Method, Request, Uri};

use super::PolicyError;

/// Assigns requests to classes: by a closure, else by the longest prefix of the path, else to the
/// class of all other requests. A request without a class is not limited.
///
/// A prefix ends at the end of a path segment: `/v1/auth` is a prefix of `/v1/auth` and
/// `/v1/auth/verify`, not of `/v1/authors`. Paths are compared as they were sent.
///
/// ```
/// use headgate_guard::Routes;
/// use http::Method;
///
/// let routes = Routes::new()
///     .prefix("/v1/auth", "auth")
///     .method(Method::POST, "/v1/reports", "reports")
///     .otherwise("public");
/// ```
#[derive(Clone, Default)]
pub struct Routes {
    chosen_by: Option<Choice>,
    paths: Vec<Route<String>>,
    otherwise: Option<String>,
}

/// A request without its body.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct RequestHead<'a> {
    /// The method.
    pub method: &'a Method,
    /// The target.
    pub uri: &'a Uri,
    /// The headers. Clients can send anything in them.
    pub headers: &'a HeaderMap,
    /// Values that the server and outer middleware have attached.
    pub extensions: &'a Extensions,
}

type Choice = Arc<dyn for<'a> Fn(&RequestHead<'a>) -> Option<&'static str> + Send + Sync>;

#[derive(Clone, Debug)]
struct Route<C> {
    method: Option<Method>,
    prefix: Box<str>,
    class: C,
}

/// Routes whose classes are indices into a policy.
pub(super) struct CompiledRoutes {
    chosen_by: Option<Choice>,
    /// Longest prefix first; of equal ones, a route with a method first.
    routes: Box<[Route<usize>]>,
    otherwise: Option<usize>,
}

// === impl Routes ===

impl Routes {
    /// Routes without any class.
    pub fn new() -> Self {
        Self::default()
    }

    /// Assigns every request to `class`.
    pub fn all(class: &str) -> Self {
        Self::new().otherwise(class)
    }

    /// Assigns requests to paths under `prefix` to `class`.
    #[must_use]
    pub fn prefix(self, prefix: &str, class: &str) -> Self {
        self.with(None, prefix, class)
    }

    /// Assigns requests with this method to paths under `prefix` to `class`.
    #[must_use]
    pub fn method(self, method: Method, prefix: &str, class: &str) -> Self {
        self.with(Some(method), prefix, class)
    }

    /// Assigns all other requests to `class`.
    #[must_use]
    pub fn otherwise(self, class: &str) -> Self {
        Self { otherwise: Some(class.into()), ..self }
    }

    /// Assigns requests by a closure. If it returns no class of the policy, the path decides.
    #[must_use]
    pub fn chosen_by<F>(self, choose: F) -> Self
    where
        F: for<'a> Fn(&RequestHead<'a>) -> Option<&'static str> + Send + Sync + 'static,
    {
        Self { chosen_by: Some(Arc::new(choose)), ..self }
    }

    fn with(mut self, method: Option<Method>, prefix: &str, class: &str) -> Self {
        self.paths.push(Route { method, prefix: prefix.into(), class: class.into() });
        self
    }

    /// Resolves the name of each class with `index`.
    pub(super) fn compile(
        &self,
        index: impl Fn(&str) -> Option<usize>,
    ) -> Result<CompiledRoutes, PolicyError> {
        let index = |class: &str| {
            index(class).ok_or_else(|| PolicyError::UnknownClass(class.chars().take(64).collect()))
        };
        let mut routes = Vec::with_capacity(self.paths.len());
        for Route { method, prefix, class } in &self.paths {
            if !prefix.starts_with('/') {
                return Err(PolicyError::Route(prefix.chars().take(64).collect()));
            }
            let (method, prefix) = (method.clone(), prefix.clone());
            routes.push(Route { method, prefix, class: index(class)? });
        }
        routes.sort_by_key(|route| (usize::MAX - route.prefix.len(), route.method.is_none()));
        Ok(CompiledRoutes {
            chosen_by: self.chosen_by.clone(),
            routes: routes.into(),
            otherwise: self.otherwise.as_deref().map(index).transpose()?,
        })
    }
}

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Routes")
            .field("chosen_by", &self.chosen_by.is_some())
            .field("paths", &self.paths)
            .field("otherwise", &self.otherwise)
            .finish()
    }
}

// === impl CompiledRoutes ===

impl CompiledRoutes {
    /// The index of the class of every request, if it is the same for all.
    pub(super) fn only_class(&self) -> Option<usize> {
        self.otherwise.filter(|_| self.chosen_by.is_none() && self.routes.is_empty())
    }

    /// The index of the class of `request`; `index` resolves a name.
    #[inline]
    pub(super) fn class<B>(
        &self,
        request: &Request<B>,
        index: impl Fn(&str) -> Option<usize>,
    ) -> Option<usize> {
        if let Some(choose) = &self.chosen_by
            && let Some(class) = choose(&RequestHead::of(request)).and_then(index)
        {
            return Some(class);
        }
        if self.routes.is_empty() {
            return self.otherwise;
        }
        let (method, path) = (request.method(), request.uri().path());
        let route = self.routes.iter().find(|route| route.matches(method, path));
        route.map_or(self.otherwise, |route| Some(route.class))
    }
}

impl<C> Route<C> {
    fn matches(&self, method: &Method, path: &str) -> bool {
        let Some(rest) = path.strip_prefix(&*self.prefix) else {
            return false;
        };
        let ends = rest.is_empty() || rest.starts_with('/') || self.prefix.ends_with('/');
        ends && self.method.as_ref().is_none_or(|wanted| wanted == method)
    }
}

// === impl RequestHead ===

impl<'a> RequestHead<'a> {
    /// The head of `request`.
    pub fn of<B>(request: &'a Request<B>) -> Self {
        Self {
            method: request.method(),
            uri: request.uri(),
            headers: request.headers(),
            extensions: request.extensions(),
        }
    }
}

/// Omits everything that a client can write.
impl fmt::Debug for RequestHead<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestHead").field("method", self.method).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class_of(routes: &Routes, method: &str, path: &str) -> Option<&'static str> {
        const CLASSES: [&str; 4] = ["auth", "reports", "public", "special"];
        let index = |class: &str| CLASSES.iter().position(|name| *name == class);
        let request = Request::builder().method(method).uri(path).body(()).unwrap();
        let routes = routes.compile(index).ok().unwrap();
        routes.class(&request, index).map(|class| CLASSES[class])
    }

    #[test]
    fn the_longest_prefix_wins_and_then_a_matching_method() {
        let routes = Routes::new()
            .prefix("/v1", "public")
            .prefix("/v1/auth", "auth")
            .prefix("/v1/reports", "public")
            .method(Method::POST, "/v1/reports", "reports");
        let cases = [
            ("GET", "/v1/auth", Some("auth")),
            ("POST", "/v1/auth/verify?x=1", Some("auth")),
            ("GET", "/v1/authors", Some("public")),
            ("GET", "/v1/reports", Some("public")),
            ("POST", "/v1/reports/7", Some("reports")),
            ("GET", "/v2", None),
            ("GET", "/v10", None),
        ];
        for (method, path, expected) in cases {
            assert_eq!(class_of(&routes, method, path), expected, "{method} {path}");
        }
        let routes = routes.otherwise("auth");
        assert_eq!(class_of(&routes, "GET", "/v2"), Some("auth"));
    }

    #[test]
    fn a_closure_takes_precedence_over_paths() {
        let routes = Routes::all("public").chosen_by(|head| match head.uri.query() {
            Some("special") => Some("special"),
            Some("unknown") => Some("unknown"),
            _ => None,
        });
        assert_eq!(class_of(&routes, "GET", "/?special"), Some("special"));
        assert_eq!(class_of(&routes, "GET", "/?unknown"), Some("public"));
        assert_eq!(class_of(&routes, "GET", "/"), Some("public"));
    }

    #[test]
    fn routes_with_an_unknown_class_or_a_relative_path_are_rejected() {
        let error = |routes: Routes| routes.compile(|_| None).err();
        let unknown = error(Routes::new().prefix("/", "nobody"));
        assert_eq!(unknown, Some(PolicyError::UnknownClass("nobody".into())));
        assert_eq!(error(Routes::all("nobody")), unknown);
        let relative = error(Routes::new().prefix("v1", "nobody"));
        assert_eq!(relative, Some(PolicyError::Route("v1".into())));
    }
}
