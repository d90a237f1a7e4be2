//! The trace span of a request.

use futures_util::future::Either;
use headgate::Decision;
use http::StatusCode;
use opentelemetry::{
    Context, KeyValue, StringValue,
    context::{FutureExt as _, WithContext},
    trace::{SpanId, Status, TraceContextExt as _, TraceId, get_active_span},
};
use tonic::Code;

/// The span of a request that is being answered. It ends when it is dropped.
pub struct Span(Context);

/// Runs `answering` within `span`, if there is one. Without tracing it costs nothing.
pub fn within<F: Future>(span: Option<&Span>, answering: F) -> Either<WithContext<F>, F> {
    match span {
        Some(Span(context)) => Either::Left(answering.with_context(context.clone())),
        None => Either::Right(answering),
    }
}

/// Runs `task` within the current request's span, if there is one, wherever it is polled.
pub fn within_current<F: Future>(task: F) -> WithContext<F> {
    task.with_current_context()
}

impl Span {
    pub(super) const fn new(context: Context) -> Self {
        Self(context)
    }

    /// Returns the id of its trace.
    pub fn trace_id(&self) -> TraceId {
        self.0.span().span_context().trace_id()
    }

    /// Returns its id.
    pub fn span_id(&self) -> SpanId {
        self.0.span().span_context().span_id()
    }

    /// Returns the id of its trace, if the trace is sampled.
    pub fn sampled(&self) -> Option<TraceId> {
        let span = self.0.span();
        let context = span.span_context();
        context.is_sampled().then(|| context.trace_id())
    }

    /// Records the decision in the span of the current request; of a batch, the joint decision.
    pub fn decided(decisions: &[&Decision]) {
        let allowed = decisions.iter().all(|decision| decision.allowed);
        let degraded = decisions.iter().any(|decision| decision.degraded.is_some());
        let leased = decisions.iter().any(|decision| decision.leased);
        get_active_span(|span| {
            span.set_attributes([
                KeyValue::new("headgate.allowed", allowed),
                KeyValue::new("headgate.degraded", degraded),
                KeyValue::new("headgate.leased", leased),
            ]);
        });
    }

    /// Records the decision of a quota in the span of the current request.
    pub fn admitted(allowed: bool) {
        get_active_span(|span| span.set_attribute(KeyValue::new("headgate.allowed", allowed)));
    }

    /// Ends it with the status of an HTTP response.
    pub fn answered_http(self, status: StatusCode) {
        let code = KeyValue::new("http.response.status_code", i64::from(status.as_u16()));
        let failed = status.is_server_error().then(|| status.as_str().to_owned().into());
        self.answered(code, failed);
    }

    /// Ends it with the status of a gRPC call.
    pub fn answered_call(self, status: Code) {
        let failed = matches!(
            status,
            Code::Unknown
                | Code::DeadlineExceeded
                | Code::Unimplemented
                | Code::Internal
                | Code::Unavailable
                | Code::DataLoss
        );
        let name = name(status);
        let failed = failed.then_some(name.into());
        self.answered(KeyValue::new("rpc.response.status_code", name), failed);
    }

    /// An error of the caller is not a failure of the span.
    fn answered(self, code: KeyValue, failed: Option<StringValue>) {
        let span = self.0.span();
        if let Some(error) = failed {
            span.set_attribute(KeyValue::new("error.type", error));
            span.set_status(Status::error(""));
        }
        span.set_attribute(code);
        span.end();
    }
}

/// The name of the status in gRPC's specification.
const fn name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
