//! The id, timeout, log line and metrics of every request.

use std::{net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use axum::{
    Router,
    http::{HeaderValue, Method, Request, header::HOST},
    response::Response,
};
use headgate::Clock;
use headgate_api::{
    in_time,
    request_id::{self, RequestId},
};
use headgate_config::LiveDuration;
use headgate_guard::{Held, HeldBody, UnreadBody};
use headgate_serve::RequestBody;
use headgate_telemetry::{
    log::{ACCESS, AccessLog},
    metrics::Stopwatch,
    trace::{Span, Tracer, within},
};
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use tracing::{Level, debug, enabled, error, field::display, info};

use super::{
    client::Peer,
    error::{self, ApiError, ErrorFormat},
    fast_path::{FastPath, FastRoute, InboundBody, Outcome},
    request_metrics::{Answered, RequestMetrics},
    routes::{Route, RouteTable},
    state::UseCases,
};

/// Answers HTTP requests.
pub(crate) struct Surface {
    router: TowerToHyperService<Router>,
    pub(super) table: RouteTable,
    fast_path: FastPath,
    around: Around,
}

/// Clock, tracer, metrics and timeout of every request.
pub(crate) struct Around {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) tracer: Option<Tracer>,
    pub(crate) metrics: RequestMetrics,
    pub(crate) access_log: AccessLog,
    /// Maximum duration of a request.
    pub(crate) request_timeout: LiveDuration,
}

impl Surface {
    pub(crate) fn new(
        use_cases: UseCases,
        around: Around,
        metrics_path: Option<&str>,
        console: bool,
    ) -> Self {
        let use_cases = Arc::new(use_cases);
        let state = Arc::clone(&use_cases).into();
        let (router, table) = super::routes(metrics_path, console).with(state);
        let fast_path = FastPath::new(&use_cases, &table);
        Self { router, table, fast_path, around }
    }

    /// Answers a request that came from `peer`.
    pub(crate) async fn answer(
        self: Arc<Self>,
        request: Request<RequestBody>,
        peer: SocketAddr,
    ) -> Response {
        let stopwatch = Stopwatch::start(&*self.around.clock);
        let id = RequestId::of(request.headers());
        let method = bounded(request.method());
        let fast = FastRoute::of(request.method(), request.uri().path());
        let route = match fast {
            Some(fast) => self.fast_path.route(fast),
            None => self.table.find(request.uri().path()),
        };
        let span = self
            .around
            .tracer
            .as_ref()
            .map(|tracer| tracer.http(request.headers(), method, route.known(), id.as_str()));

        let (answered, unread) = {
            // Pinned in place: the future of a check is large, and would be moved with every
            // request.
            let answering = pin!(self.dispatch(fast, request, peer, &id, route));
            within(span.as_ref(), answering).await
        };
        let late = |_| (route.on_timeout)().respond(route.errors, &id);
        let mut response = answered.unwrap_or_else(late);

        let took = stopwatch.elapsed();
        self.log(route, &id, span.as_ref(), method, &response, took);
        let status = response.status();
        let trace = span.as_ref().and_then(Span::sampled);
        if let Some(span) = span {
            span.answered_http(status);
        }
        let (path, status) = (&*route.template, status.as_str());
        let answered = Answered { method, path, status, took, trace };
        self.around.metrics.answered(&answered);
        response.headers_mut().insert(request_id::HEADER, id.into_header());
        if let Some(unread) = unread {
            unread.drain().await.write(response.headers_mut());
        }
        response
    }

    /// Answers a request within the time limit, by the fast path or by the router.
    pub(super) async fn dispatch<B: InboundBody>(
        &self,
        fast: Option<FastRoute>,
        request: Request<B>,
        peer: SocketAddr,
        id: &RequestId,
        route: &Route,
    ) -> Outcome<B> {
        let timeout = self.around.request_timeout.get();
        if let Some(fast) = fast {
            if let Err(error) = route.check_query(request.method(), request.uri().query()) {
                let (head, body) = request.into_parts();
                let response = error.respond(route.errors, id);
                return (Ok(response), UnreadBody::new(head.version, &head.headers, body));
            }
            return self.fast_path.answer(fast, request, peer, id, timeout).await;
        }
        let (request, held) = Held::hold(request);
        let routed = Box::pin(self.route(request, peer, id, route.errors));
        let answered = in_time(timeout, routed).await;
        (answered, held.and_then(Held::unread))
    }

    async fn route<B: InboundBody>(
        &self,
        mut request: Request<HeldBody<B>>,
        peer: SocketAddr,
        id: &RequestId,
        errors: ErrorFormat,
    ) -> Response {
        request.extensions_mut().insert(Peer(peer));
        // HTTP/2 has an authority instead; handlers know one of them.
        if let (None, Some(authority)) = (request.headers().get(HOST), request.uri().authority())
            && let Ok(host) = HeaderValue::from_str(authority.as_str())
        {
            request.headers_mut().insert(HOST, host);
        }
        // The author of a change is recorded with the request's id.
        request.extensions_mut().insert(id.clone());
        match error::scope(errors, id.clone(), self.router.call(request)).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

impl Surface {
    /// Logs an answered request with the route's template, since the path may contain personal
    /// data.
    fn log(
        &self,
        route: &Route,
        id: &RequestId,
        span: Option<&Span>,
        method: &str,
        response: &Response,
        took: Duration,
    ) {
        let refusal = response.extensions().get::<ApiError>();
        let picked = refusal.is_none() && self.around.access_log.picks();
        if refusal.is_none() && !picked && !enabled!(Level::DEBUG) {
            return;
        }
        let (path, trace_id) = (&*route.template, span.map(Span::trace_id).map(display));
        let span_id = span.map(Span::span_id).map(display);
        let (request_id, status) = (id.as_str(), response.status().as_u16());
        let took_us = took.as_micros() as u64;
        let Some(refusal) = refusal else {
            if picked {
                info!(
                    target: ACCESS,
                    request_id, trace_id, span_id, method, path, status, took_us,
                    "answered {request_id}"
                );
            } else {
                debug!(
                    request_id,
                    trace_id, span_id, method, path, status, took_us, "answered {request_id}"
                );
            }
            return;
        };
        let code = refusal.code(route.errors.namespace());
        if let Some(cause) = refusal.cause() {
            error!(
                request_id,
                trace_id,
                span_id,
                method,
                path,
                status,
                code,
                took_us,
                cause,
                "failed {request_id}"
            );
        } else {
            info!(
                request_id,
                trace_id, span_id, method, path, status, code, took_us, "refused {request_id}"
            );
        }
    }
}

/// Returns the method's name, or a common name for unknown methods: labels must be bounded.
fn bounded(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}
