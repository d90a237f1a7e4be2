//! The id, timeout, log line and metrics of every call.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::{Arc, OnceLock},
    time::Duration,
};

use headgate::Clock;
use headgate_api::{
    Access, Namespace, in_time,
    quotas::QuotaServices,
    rate_limits::{MeteredChecks, RuleAdmin},
    request_id::{self, RequestId},
};
use headgate_config::LiveDuration;
use headgate_guard::{Held, HeldBody};
use headgate_serve::RequestBody;
use headgate_telemetry::{
    log::{ACCESS, AccessLog},
    metrics::Stopwatch,
    trace::{Span, Tracer, within},
};
use http::{HeaderValue, Request, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::Full;
use tokio::sync::{Semaphore, watch};
use tonic::{Code, Status, body::Body};
use tonic_health::pb::health_server::HealthServer;
use tower_service::Service;
use tracing::{debug, error, field::display, info};

use super::{
    call_body::CallBody,
    call_metrics::{CallMetrics, Handled},
    deadline,
    envoy::{EnvoyHandlers, EnvoySurface},
    error::{CallError, MAX_MESSAGE_BYTES},
    health::Health,
    methods::{self, METHODS, Method},
    proto::{
        envoy::service::ratelimit::v3::rate_limit_service_server::RateLimitServiceServer as EnvoyServer,
        quota::quota_service_server::QuotaServiceServer,
        rate_limit_service_server::RateLimitServiceServer,
    },
    protocol::Protocol,
    quota_service::QuotaHandlers,
    rate_limit_service::RateLimitHandlers,
    reflection,
};

/// Answers gRPC calls.
pub struct Grpc {
    /// One for each method, in the order of [`METHODS`].
    routes: [Route; METHODS.len()],
    around: Around,
    draining: watch::Sender<bool>,
    stopping: watch::Sender<bool>,
}

/// The service of a method.
struct Route {
    answerer: Answerer,
    /// Maximum time without a message, if callers send a stream of them.
    stream_idle: Option<Duration>,
    /// Bounds the number of its streams.
    room: Option<Arc<Semaphore>>,
}

/// The use cases of the services.
pub struct UseCases {
    /// Checks by rules.
    pub checks: Arc<MeteredChecks>,
    /// Managing rules, usage and resets.
    pub rules: Arc<RuleAdmin>,
    /// Quotas.
    pub quotas: Arc<QuotaServices>,
    /// Envoy's service, if it is enabled.
    pub envoy: Option<EnvoySurface>,
    /// Authorization.
    pub access: Arc<Access>,
}

/// Clock, tracer, metrics and timeout of every call.
pub struct Around {
    /// Clock of durations.
    pub clock: Arc<dyn Clock>,
    /// Opens spans, if tracing is enabled.
    pub tracer: Option<Tracer>,
    /// Counts calls.
    pub metrics: CallMetrics,
    /// Picks the calls that the access log has.
    pub access_log: AccessLog,
    /// Maximum duration of a call.
    pub request_timeout: LiveDuration,
}

type Inbound = CallBody<HeldBody<RequestBody>>;

type Answerer = Arc<dyn Fn(Request<Inbound>) -> Answering + Send + Sync>;

type Answering = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

// === impl Grpc ===

impl Grpc {
    /// Creates the services.
    pub fn new(use_cases: UseCases, around: Around) -> Self {
        let UseCases { checks, rules, quotas, envoy, access } = use_cases;
        let (draining, drained) = watch::channel(false);
        let starting = envoy.as_ref().map(|envoy| envoy.limits.watch_starting());
        // Without Envoy there is no first configuration to wait for.
        let starting = starting.unwrap_or_else(|| watch::channel(false).1);
        let handlers = RateLimitHandlers { checks, rules, access: Arc::clone(&access) };
        let rate_limit = answerer(
            RateLimitServiceServer::new(handlers).max_decoding_message_size(MAX_MESSAGE_BYTES),
        );
        let quotas = QuotaHandlers { quotas, access: Arc::clone(&access) };
        let quotas =
            answerer(QuotaServiceServer::new(quotas).max_decoding_message_size(MAX_MESSAGE_BYTES));
        let envoy = EnvoyServer::new(EnvoyHandlers { envoy, access });
        let envoy = answerer(envoy.max_decoding_message_size(MAX_MESSAGE_BYTES));
        let health = answerer(
            HealthServer::new(Health::new(drained, starting))
                .max_decoding_message_size(MAX_MESSAGE_BYTES),
        );
        let v1 =
            lazy(|| Ok(answerer(reflection::v1()?.max_decoding_message_size(MAX_MESSAGE_BYTES))));
        let v1alpha = lazy(|| {
            Ok(answerer(reflection::v1alpha()?.max_decoding_message_size(MAX_MESSAGE_BYTES)))
        });
        let reflecting = Arc::new(Semaphore::new(reflection::MAX_STREAMS));
        let routes = METHODS.each_ref().map(|method| {
            let answerer = Arc::clone(match method.service {
                "envoy.service.ratelimit.v3.RateLimitService" => &envoy,
                "grpc.health.v1.Health" => &health,
                "grpc.reflection.v1.ServerReflection" => &v1,
                "grpc.reflection.v1alpha.ServerReflection" => &v1alpha,
                _ if method.namespace() == Namespace::Quota => &quotas,
                _ => &rate_limit,
            });
            let room = method.is_reflection().then(|| Arc::clone(&reflecting));
            Route { answerer, stream_idle: method.stream_idle(), room }
        });
        Self { routes, around, draining, stopping: watch::Sender::new(false) }
    }

    /// Makes the health service report that the server is draining, which ends its watches.
    pub fn drain(&self) {
        self.draining.send_replace(true);
    }

    /// Ends the streams that callers would end otherwise: shutdown waits for them.
    pub fn end_streams(&self) {
        self.stopping.send_replace(true);
    }

    /// Answers one call.
    pub async fn answer(&self, request: Request<RequestBody>) -> Response<Body> {
        let (request, held) = Held::hold(request);
        let mut response = self.dispatch(request).await;
        if let Some(unread) = held.and_then(Held::unread) {
            // Boxed: calls over HTTP/2 have no room for it.
            Box::pin(unread.drain()).await.write(response.headers_mut());
        }
        response
    }

    async fn dispatch(&self, mut request: Request<HeldBody<RequestBody>>) -> Response<Body> {
        let stopwatch = Stopwatch::start(&*self.around.clock);
        let id = RequestId::of(request.headers());
        let Some(protocol) = Protocol::of(&request) else {
            return with_id(not_grpc(), id);
        };
        let method = methods::find(request.uri().path());
        // Handlers read the id there, whether the caller sent one or not.
        request.headers_mut().insert(request_id::HEADER, id.clone().into_header());
        let called = method.map(|place| &METHODS[place]);
        let span = self.around.tracer.as_ref().map(|tracer| {
            let called = called.map(|method| (method.service, method.name));
            tracer.call(request.headers(), called, id.as_str())
        });

        let mut response = match method {
            None => Status::from(CallError::NoSuchMethod).into_http(),
            Some(place) => within(span.as_ref(), self.call(place, request)).await,
        };

        let took = stopwatch.elapsed();
        let refusal = response.extensions_mut().remove::<Status>();
        let refusal = refusal.map(|status| CallError::of(&status));
        let namespace = called.map_or(Namespace::RateLimit, Method::namespace);
        self.log((namespace, &id), span.as_ref(), method, refusal.as_ref(), took);
        let trace = span.as_ref().and_then(Span::sampled);
        if let Some(span) = span {
            span.answered_call(refusal.as_ref().map_or(Code::Ok, CallError::status));
        }
        let refused = refusal.as_ref().map(|refusal| code_name(refusal.status()));
        self.around.metrics.handled(&Handled { method, refused, took, trace });
        if let Some(refusal) = refusal {
            response = refusal.into_status(namespace).into_http();
        }
        protocol.encode(with_id(response, id))
    }

    /// Calls the method at `place`, within the timeouts of the caller and of the server.
    async fn call(&self, place: usize, request: Request<HeldBody<RequestBody>>) -> Response<Body> {
        let Route { answerer, stream_idle, room } = &self.routes[place];
        let Some(idle) = *stream_idle else {
            return self.in_time(answerer, request.map(CallBody::whole)).await;
        };
        let permit = room.as_ref().map(|room| Arc::clone(room).try_acquire_owned());
        let Ok(permit) = permit.transpose() else {
            return Status::from(CallError::TooManyStreams).into_http();
        };
        let (head, body) = request.into_parts();
        let (body, end) = CallBody::stream(body, idle, self.stopping.subscribe());
        let response = self.in_time(answerer, Request::from_parts(head, body)).await;
        end.report(METHODS[place].namespace(), permit, response)
    }

    async fn in_time(&self, answerer: &Answerer, request: Request<Inbound>) -> Response<Body> {
        let longest = self.around.request_timeout.get();
        let timeout = deadline::of(request.headers()).map_or(longest, |asked| asked.min(longest));
        match in_time(timeout, answerer(request)).await {
            Ok(Ok(response)) => response,
            Err(_) => Status::from(CallError::TimedOut).into_http(),
        }
    }
}

fn answerer<S>(service: S) -> Answerer
where
    S: Service<Request<Inbound>, Response = Response<Body>, Error = Infallible, Future = Answering>
        + Clone
        + Send
        + Sync
        + 'static,
{
    // The services that tonic makes are always ready, and cheap to clone.
    Arc::new(move |request| service.clone().call(request))
}

/// An answerer that is created on its first call: descriptions are large, and most servers never
/// need them.
fn lazy(make: fn() -> Result<Answerer, tonic_reflection::server::Error>) -> Answerer {
    let answerer = OnceLock::new();
    Arc::new(move |request| match answerer.get_or_init(make) {
        Ok(answer) => answer(request),
        Err(error) => {
            let failed = CallError::Internal(format!("failed to build reflection: {error}"));
            Box::pin(async { Ok(Status::from(failed).into_http()) })
        }
    })
}

fn not_grpc() -> Response<Body> {
    let words = "this port serves gRPC over HTTP/2, and binary gRPC-Web\n";
    let mut response = Response::new(Body::new(Full::from(words)));
    *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    let content_type = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

fn with_id(mut response: Response<Body>, id: RequestId) -> Response<Body> {
    response.headers_mut().insert(request_id::HEADER, id.into_header());
    response
}

impl Grpc {
    /// Logs the name of the method, never the path: that may contain personal data.
    fn log(
        &self,
        (namespace, id): (Namespace, &RequestId),
        span: Option<&Span>,
        method: Option<usize>,
        refusal: Option<&CallError>,
        took: Duration,
    ) {
        let (request_id, trace_id) = (id.as_str(), span.map(Span::trace_id).map(display));
        let span_id = span.map(Span::span_id).map(display);
        let method = method.map_or("unmatched", |place| METHODS[place].name);
        let took_us = took.as_micros() as u64;
        let Some(refusal) = refusal else {
            if self.around.access_log.picks() {
                info!(
                    target: ACCESS,
                    request_id, trace_id, span_id, method, status = "OK", took_us,
                    "answered {request_id}"
                );
            } else {
                debug!(request_id, trace_id, span_id, method, took_us, "answered {request_id}");
            }
            return;
        };
        let (status, code) = (code_name(refusal.status()), refusal.code(namespace));
        if let Some(cause) = refusal.cause() {
            error!(
                request_id,
                trace_id, span_id, method, status, code, took_us, cause, "failed {request_id}"
            );
        } else {
            info!(
                request_id,
                trace_id, span_id, method, status, code, took_us, "refused {request_id}"
            );
        }
    }
}

/// The usual name of the status in gRPC metrics.
const fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::InvalidArgument => "InvalidArgument",
        Code::DeadlineExceeded => "DeadlineExceeded",
        Code::NotFound => "NotFound",
        Code::AlreadyExists => "AlreadyExists",
        Code::Aborted => "Aborted",
        Code::PermissionDenied => "PermissionDenied",
        Code::Unauthenticated => "Unauthenticated",
        Code::ResourceExhausted => "ResourceExhausted",
        Code::Unimplemented => "Unimplemented",
        Code::Unavailable => "Unavailable",
        Code::Internal => "Internal",
        _ => "Unknown",
    }
}
