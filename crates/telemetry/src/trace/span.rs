//! The trace span of a request.

use futures_util::future::Either;
use headgate::Decision;
use http::StatusCode;
use opentelemetry::{
    Context, KeyValue,
    context::{FutureExt as _, WithContext},
    trace::{Status, TraceContextExt as _, TraceId, get_active_span},
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

impl Span {
    pub(super) const fn new(context: Context) -> Self {
        Self(context)
    }

    /// Returns the id of its trace.
    pub fn trace_id(&self) -> TraceId {
        self.0.span().span_context().trace_id()
    }

    /// Records the decision in the span of the current request; of a batch, the joint decision.
    pub fn decided(decisions: &[&Decision]) {
        let allowed = decisions.iter().all(|decision| decision.allowed);
        let degraded = decisions.iter().any(|decision| decision.degraded.is_some());
        get_active_span(|span| {
            span.set_attributes([
                KeyValue::new("headgate.allowed", allowed),
                KeyValue::new("headgate.degraded", degraded),
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
        self.answered(code, status.is_server_error());
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
        self.answered(KeyValue::new("rpc.grpc.status_code", i64::from(status as i32)), failed);
    }

    /// An error of the caller is not a failure of the span.
    fn answered(self, code: KeyValue, failed: bool) {
        let span = self.0.span();
        if failed {
            span.set_status(Status::error(""));
        }
        span.set_attribute(code);
        span.end();
    }
}
