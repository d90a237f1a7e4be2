//! Spans of calls to Redis and to the database, as children of the request's span.

use std::time::{Duration, SystemTime};

use headgate::{Batch, Check, HoldersFuture, Store, StoreError, StoreFuture, Verb};
use opentelemetry::{
    Context, KeyValue,
    trace::{Span as _, SpanBuilder, SpanKind, Status, Tracer as _, get_active_span},
};
use opentelemetry_sdk::trace::{SdkTracer, Span as SdkSpan};

/// Opens spans of calls to one database, within sampled requests only: for others it reads a
/// thread-local variable and allocates nothing.
#[derive(Clone, Debug)]
pub struct DatabaseTracer {
    tracer: SdkTracer,
    /// Attributes of all spans: the system and, if there is one server, its address.
    common: Vec<KeyValue>,
}

/// A statement that has ended.
#[derive(Clone, Copy, Debug)]
pub struct EndedStatement {
    /// Verb, such as `select`.
    pub operation: &'static str,
    /// Table; empty if there is none.
    pub table: &'static str,
    /// Duration until now.
    pub took: Duration,
    /// Class of the error, if it failed.
    pub error: Option<&'static str>,
}

/// A store whose calls are spans of the request that makes them.
pub struct TracedStore<S> {
    store: S,
    tracer: DatabaseTracer,
}

// === impl DatabaseTracer ===

impl DatabaseTracer {
    /// `system` is a well-known value of `db.system.name`.
    pub(super) fn new(
        tracer: SdkTracer,
        system: &'static str,
        server: Option<(String, u16)>,
    ) -> Self {
        let mut common = vec![KeyValue::new("db.system.name", system)];
        if let Some((host, port)) = server {
            common.push(KeyValue::new("server.address", host));
            common.push(KeyValue::new("server.port", i64::from(port)));
        }
        Self { tracer, common }
    }

    /// Records a statement of the current request.
    pub fn ended(&self, statement: &EndedStatement) {
        if !is_sampled() {
            return;
        }
        let EndedStatement { operation, table, took, error } = *statement;
        let mut attributes = vec![KeyValue::new("db.operation.name", operation)];
        let name = if table.is_empty() {
            operation.to_owned()
        } else {
            attributes.push(KeyValue::new("db.collection.name", table));
            format!("{operation} {table}")
        };
        #[expect(clippy::disallowed_methods, reason = "spans have the wall clock's time")]
        let began = SystemTime::now().checked_sub(took);
        let mut builder = self.builder(name, attributes);
        builder.start_time = began;
        end(builder.start_with_context(&self.tracer, &Context::current()), error);
    }

    fn builder(&self, name: String, mut attributes: Vec<KeyValue>) -> SpanBuilder {
        attributes.extend_from_slice(&self.common);
        let builder = self.tracer.span_builder(name).with_kind(SpanKind::Client);
        builder.with_attributes(attributes)
    }
}

/// Returns true if the current request has a span that is sampled.
fn is_sampled() -> bool {
    get_active_span(|span| span.span_context().is_sampled())
}

fn end(mut span: SdkSpan, error: Option<&'static str>) {
    if let Some(error) = error {
        span.set_attribute(KeyValue::new("error.type", error));
        span.set_status(Status::error(""));
    }
    span.end();
}

// === impl TracedStore ===

impl<S> TracedStore<S> {
    /// Traces the calls to `store`.
    pub const fn new(store: S, tracer: DatabaseTracer) -> Self {
        Self { store, tracer }
    }
}

impl<S: Store> Store for TracedStore<S> {
    fn apply<'a>(&'a self, verb: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a> {
        if !is_sampled() {
            return self.store.apply(verb, batch);
        }
        // The script of every verb is called by its digest. Keys are left out.
        let attributes = vec![
            KeyValue::new("db.operation.name", "EVALSHA"),
            KeyValue::new("headgate.verb", name(verb)),
            KeyValue::new("headgate.checks", batch.checks().len() as i64),
        ];
        let builder = self.tracer.builder("EVALSHA".to_owned(), attributes);
        let span = builder.start_with_context(&self.tracer.tracer, &Context::current());
        StoreFuture::pending(async move {
            let answer = self.store.apply(verb, batch).await;
            end(span, answer.as_ref().err().map(error_type));
            answer
        })
    }

    fn holders<'a>(&'a self, check: Check<'a>, max: usize) -> HoldersFuture<'a> {
        if !is_sampled() {
            return self.store.holders(check, max);
        }
        let attributes = vec![KeyValue::new("db.operation.name", "EVAL")];
        let builder = self.tracer.builder("EVAL".to_owned(), attributes);
        let span = builder.start_with_context(&self.tracer.tracer, &Context::current());
        Box::pin(async move {
            let answer = self.store.holders(check, max).await;
            end(span, answer.as_ref().err().map(error_type));
            answer
        })
    }

    fn has_breakers(&self) -> bool {
        self.store.has_breakers()
    }
}

const fn name(verb: Verb) -> &'static str {
    match verb {
        Verb::Peek => "peek",
        Verb::Acquire => "acquire",
        Verb::Reserve { .. } => "reserve",
        Verb::Use { .. } => "use",
        Verb::Commit(_) => "commit",
        Verb::Cancel(_) => "cancel",
        Verb::Refund => "refund",
        Verb::Lease => "lease",
        Verb::GiveBack => "give_back",
        Verb::Reset => "reset",
    }
}

const fn error_type(error: &StoreError) -> &'static str {
    match error {
        StoreError::Unavailable(_) => "unavailable",
        StoreError::Timeout(_) => "timeout",
        StoreError::BreakerOpen => "breaker_open",
        StoreError::Overloaded => "overloaded",
        StoreError::Refused(_) => "refused",
        StoreError::Contended(_) => "contended",
        StoreError::Corrupt(_) => "corrupt",
        StoreError::Unsupported(_) => "unsupported",
        _ => "_OTHER",
    }
}
