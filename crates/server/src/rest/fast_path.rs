//! The hottest routes, answered without the router: the path and method are compared here, and the
//! handlers of the route table are called directly. That saves a fifth of the instructions of a
//! check. Their responses are those of the router, which a test below compares.

use std::{net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use axum::{
    BoxError,
    body::{Bytes, HttpBody},
    extract::State,
    http::{Method, Request},
    response::Response,
};
use headgate_api::{in_time, rate_limits::MeteredChecks, request_id::RequestId};
use headgate_guard::{HeldBody, UnreadBody};
use tokio::time::error::Elapsed;

use super::{
    check,
    client::Peer,
    error::ApiError,
    json_body::JsonBody,
    keyed::{self, KeyedApi},
    path::PathParam,
    reservations,
    routes::{Route, RouteTable},
    state::UseCases,
};

/// Answers the hottest routes.
pub(super) struct FastPath {
    checks: Arc<MeteredChecks>,
    check_route: Route,
    keyed: Arc<KeyedApi>,
    key_route: Route,
    reserve_route: Route,
    settle_route: Route,
}

/// A route that is answered here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FastRoute {
    /// `POST /api/v1/ratelimit/check`.
    Check,
    /// `GET` and `POST /api/v1/rate-limit/check`.
    CheckKey,
    /// `POST /api/v1/ratelimit/reservations`.
    Reserve,
    /// `POST /api/v1/ratelimit/reservations/{id}/settle`.
    Settle,
}

/// The body of a request as it arrives.
pub(super) trait InboundBody:
    HttpBody<Data = Bytes, Error: Into<BoxError> + Send> + Unpin + Send + 'static
{
}

impl<B> InboundBody for B where
    B: HttpBody<Data = Bytes, Error: Into<BoxError> + Send> + Unpin + Send + 'static
{
}

/// The response, unless it took too long, and the rest of a body that was not read to its end.
pub(super) type Outcome<B> = (Result<Response, Elapsed>, Option<UnreadBody<B>>);

impl FastRoute {
    /// The route of a request, if it is answered here.
    pub(super) fn of(method: &Method, path: &str) -> Option<Self> {
        if *method == Method::POST && path == check::PATH {
            Some(Self::Check)
        } else if (*method == Method::GET || *method == Method::POST) && path == keyed::check::PATH
        {
            Some(Self::CheckKey)
        } else if *method == Method::POST && path == reservations::PATH {
            Some(Self::Reserve)
        } else if *method == Method::POST && settled_id(path).is_some() {
            Some(Self::Settle)
        } else {
            None
        }
    }
}

/// The id in the path of a settlement, if it needs no decoding.
fn settled_id(path: &str) -> Option<&str> {
    let id = path.strip_prefix(reservations::PATH)?.strip_prefix('/')?.strip_suffix("/settle")?;
    (!id.is_empty() && !id.contains(['/', '%'])).then_some(id)
}

impl FastPath {
    pub(super) fn new(use_cases: &UseCases, table: &RouteTable) -> Self {
        Self {
            checks: Arc::clone(&use_cases.checks),
            check_route: table.find(check::PATH).clone(),
            keyed: Arc::clone(&use_cases.keyed),
            key_route: table.find(keyed::check::PATH).clone(),
            reserve_route: table.find(reservations::PATH).clone(),
            settle_route: table.find(reservations::changes::SETTLE).clone(),
        }
    }

    pub(super) const fn route(&self, route: FastRoute) -> &Route {
        match route {
            FastRoute::Check => &self.check_route,
            FastRoute::CheckKey => &self.key_route,
            FastRoute::Reserve => &self.reserve_route,
            FastRoute::Settle => &self.settle_route,
        }
    }

    /// Answers a request of `route` within `timeout`.
    pub(super) async fn answer<B: InboundBody>(
        &self,
        route: FastRoute,
        request: Request<B>,
        peer: SocketAddr,
        id: &RequestId,
        timeout: Duration,
    ) -> Outcome<B> {
        if route == FastRoute::CheckKey {
            let (head, body) = request.into_parts();
            let check = async {
                let answer = keyed::check::check(&self.keyed, &head, Some(Peer(peer))).await;
                answer.unwrap_or_else(|error| error.respond(self.key_route.errors, id))
            };
            let answered = in_time(timeout, pin!(check)).await;
            return (answered, UnreadBody::new(head.version, &head.headers, body));
        }
        let mut request = request.map(HeldBody::owned);
        let decide = async {
            let answer = self.decide(route, &mut request).await;
            answer.unwrap_or_else(|error| error.respond(self.route(route).errors, id))
        };
        let answered = in_time(timeout, pin!(decide)).await;
        let (head, body) = request.into_parts();
        (answered, body.unread(&head))
    }

    /// Answers a request with a JSON body.
    async fn decide<B: InboundBody>(
        &self,
        route: FastRoute,
        request: &mut Request<HeldBody<B>>,
    ) -> Result<Response, ApiError> {
        <JsonBody>::announced(request)?;
        let body = JsonBody::read(request.body_mut()).await?;
        // Others on the heap, so that a check does not carry their state.
        match route {
            FastRoute::Reserve => {
                let checks = &self.checks;
                Box::pin(reservations::reserve_by(checks, request.headers(), &body)).await
            }
            FastRoute::Settle => {
                let id = settled_id(request.uri().path()).unwrap_or_default().to_owned();
                let checks = State(Arc::clone(&self.checks));
                Box::pin(reservations::changes::settle(checks, PathParam(id), body)).await
            }
            FastRoute::Check | FastRoute::CheckKey => {
                check::check(State(Arc::clone(&self.checks)), body).await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, http::header};
    use http_body_util::BodyExt as _;
    use tempfile::TempDir;

    use super::*;
    use crate::{app::App, config::Config};

    const PEER: SocketAddr =
        SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9);

    /// Status, headers and body of a response.
    type Answer = (u16, Vec<(String, String)>, String);

    /// An app with a state of its own.
    async fn app(folder: &TempDir) -> App {
        let variables = [
            ("HEADGATE__SERVER__DATA_DIR", folder.path().to_str().unwrap()),
            // No unit returns between two requests.
            ("HEADGATE__RATELIMIT__DEFAULT_WINDOW_SECONDS", "86400"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let config = Config::load(None, variables).unwrap();
        Box::pin(App::build(&config)).await.unwrap()
    }

    /// Sends a request by the fast path, or by the router.
    async fn answer(
        app: &App,
        fast: Option<FastRoute>,
        request: Request<Body>,
        id: &RequestId,
    ) -> Answer {
        parts(send(app, fast, request, id).await).await
    }

    async fn send(
        app: &App,
        fast: Option<FastRoute>,
        request: Request<Body>,
        id: &RequestId,
    ) -> Response {
        let surface = app.surface();
        let route = surface.table.find(request.uri().path());
        surface.dispatch(fast, request, PEER, id, route).await.0.unwrap()
    }

    async fn parts(response: Response) -> Answer {
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let mut headers: Vec<_> = head
            .headers
            .iter()
            // The router computes the length; hyper does it for the fast path.
            .filter(|(name, _)| **name != header::CONTENT_LENGTH)
            .map(|(name, value)| (name.to_string(), without_times(value.to_str().unwrap())))
            .collect();
        headers.sort();
        (head.status.as_u16(), headers, without_times(str::from_utf8(&body).unwrap()))
    }

    /// Masks times, which pass between two responses: at most the window's 60 seconds, or at least
    /// four digits in milliseconds and Unix seconds. Limits and allowances lie between.
    fn without_times(text: &str) -> String {
        let mask = |part: &str| {
            let digits = part.trim_end_matches(|c: char| !c.is_ascii_digit());
            match digits.parse() {
                Ok(0_u64 | 61..=999) | Err(_) => part.to_owned(),
                Ok(_) => format!("T{}", &part[digits.len()..]),
            }
        };
        text.split_inclusive(|c: char| !c.is_ascii_digit()).map(mask).collect()
    }

    fn request(method: &str, uri: &str, body: &str) -> Request<Body> {
        let request = Request::builder().method(method).uri(uri);
        let request = request.header(header::CONTENT_TYPE, "application/json");
        request.body(Body::from(body.to_owned())).unwrap()
    }

    #[tokio::test]
    async fn answers_as_the_router_does() {
        let folder = TempDir::new().unwrap();
        let (app, id) = (app(&folder).await, RequestId::generate());
        let check = "/api/v1/ratelimit/check";
        // A dry run takes nothing: the second response is the same.
        let dry_run = r#"{"scope":"user","identifier":"u1","dry_run":true}"#;
        for (method, uri, body) in [
            ("POST", check, dry_run),
            ("POST", check, r#"{"scope":"nobody"}"#),
            ("POST", check, "[]"),
            ("POST", "/api/v1/ratelimit/check?dry_run=true&cost=5", dry_run),
            ("POST", "/api/v1/rate-limit/check?permits=x", ""),
            ("GET", "/api/v1/rate-limit/check?algorithm=none", ""),
            ("POST", reservations::PATH, r#"{"checks":[{"scope":"nobody"}],"ttl_seconds":0}"#),
            ("POST", reservations::PATH, "[]"),
            ("POST", "/api/v1/ratelimit/reservations/unknown/settle", r#"{"cost":1}"#),
            ("POST", "/api/v1/ratelimit/reservations/unknown/settle", "{"),
        ] {
            let fast = FastRoute::of(&method.parse().unwrap(), uri.split('?').next().unwrap());
            assert!(fast.is_some(), "{method} {uri}");
            let by_fast_path = answer(&app, fast, request(method, uri, body), &id).await;
            let by_router = answer(&app, None, request(method, uri, body), &id).await;
            assert_eq!(by_fast_path, by_router, "{method} {uri}");
        }
    }

    #[tokio::test]
    async fn admits_and_denies_as_the_router_does() {
        let folders = [TempDir::new().unwrap(), TempDir::new().unwrap()];
        let (fast_app, router_app) = (app(&folders[0]).await, app(&folders[1]).await);
        let id = RequestId::generate();
        let check = "/api/v1/ratelimit/check";
        let all = r#"{"scope":"user","identifier":"u1","cost":100}"#;
        let by_key = "/api/v1/rate-limit/check?algorithm=SLIDING_WINDOW&key=u1&permits=100";
        let by_address = "/api/v1/rate-limit/check?algorithm=SLIDING_WINDOW&permits=100";
        for (method, uri, body, status, allowed) in [
            ("POST", check, all, 200, true),
            ("POST", check, all, 200, false),
            ("POST", by_key, "", 200, true),
            ("GET", by_key, "", 429, false),
            ("GET", by_address, "", 200, true),
            ("POST", by_address, "", 429, false),
        ] {
            let fast = FastRoute::of(&method.parse().unwrap(), uri.split('?').next().unwrap());
            assert!(fast.is_some(), "{method} {uri}");
            let by_fast_path = answer(&fast_app, fast, request(method, uri, body), &id).await;
            let by_router = answer(&router_app, None, request(method, uri, body), &id).await;
            assert_eq!(by_fast_path, by_router, "{method} {uri}");

            let (actual, headers, text) = by_fast_path;
            assert_eq!(actual, status, "{text}");
            assert!(text.contains(&format!("\"allowed\":{allowed}")), "{text}");
            let has = |header: &str| headers.iter().any(|(name, _)| name == header);
            assert!(has("x-ratelimit-remaining") && has("ratelimit-policy"), "{headers:?}");
            assert_eq!(has("retry-after"), !allowed, "{headers:?}");
        }
    }

    #[tokio::test]
    async fn reserves_and_settles_as_the_router_does() {
        let id = RequestId::generate();
        let mut answers = Vec::new();
        for is_fast in [true, false] {
            let folder = TempDir::new().unwrap();
            let app = app(&folder).await;
            let post = async |path: &str, body: &str| {
                let fast = FastRoute::of(&Method::POST, path).filter(|_| is_fast);
                let response = send(&app, fast, request("POST", path, body), &id).await;
                let status = response.status().as_u16();
                let body = response.into_body().collect().await.unwrap().to_bytes();
                (status, String::from_utf8(body.to_vec()).unwrap())
            };
            let body = r#"{"checks":[{"scope":"user","identifier":"u1","cost":3}]}"#;
            let (status, reserved) = post(reservations::PATH, body).await;
            assert_eq!(status, 201, "{reserved}");
            let parsed: serde_json::Value = serde_json::from_str(&reserved).unwrap();
            let [pending, until] = ["id", "expires_at"].map(|name| parsed[name].as_str().unwrap());
            let path = format!("{}/{pending}/settle", reservations::PATH);
            let (status, settled) = post(&path, r#"{"cost":2}"#).await;
            assert_eq!(status, 200, "{settled}");
            answers.push([reserved.clone(), settled].map(|text| {
                let text = text.replace(pending, "ID").replace(until, "T");
                assert!(text.contains("ID"), "{text}");
                without_times(&text)
            }));
        }
        assert_eq!(answers[0], answers[1]);
    }

    #[test]
    fn only_paths_that_need_no_decoding_are_fast() {
        let of = |path: &str| FastRoute::of(&Method::POST, path);
        assert_eq!(of("/api/v1/ratelimit/reservations/abc/settle"), Some(FastRoute::Settle));
        for path in ["reservations/", "reservations//settle", "reservations/a%62c/settle"] {
            assert_eq!(of(&format!("/api/v1/ratelimit/{path}")), None, "{path}");
        }
        for path in ["reservations/abc", "reservations/abc/use", "reservations/a/b/settle"] {
            assert_eq!(of(&format!("/api/v1/ratelimit/{path}")), None, "{path}");
        }
        assert_eq!(FastRoute::of(&Method::GET, reservations::PATH), None);
    }
}
