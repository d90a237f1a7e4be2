//! Calls of requests that are not traced cost no allocation.
//!
//! A binary of its own: its allocator counts for all threads.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{alloc::System, time::Duration};

use headgate::{Batch, Check, Cost, Key, Limit, Store, Verb};
use headgate_store_memory::MemoryStore;
use headgate_telemetry::{
    AppConfig, TraceConfig,
    trace::{EndedStatement, TracedStore, Tracer, within},
};
use http::HeaderMap;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const STATEMENT: EndedStatement = EndedStatement {
    operation: "select",
    table: "rate_limit_rules",
    took: Duration::from_millis(1),
    error: None,
};

#[tokio::test]
async fn calls_without_a_sampled_request_allocate_nothing() {
    let config = TraceConfig { enabled: true, ..TraceConfig::default() };
    let tracer = Tracer::start(&AppConfig::default(), &config).unwrap().expect("a tracer");
    let database = tracer.database("redis", Some(("localhost".to_owned(), 6379)));
    let store = TracedStore::new(MemoryStore::builder().build(), database.clone());
    let limit = Limit::cooldown(Duration::from_secs(60)).unwrap();
    let batch = Batch::from(Check::new(Key::new("user:42").unwrap(), &limit, Cost::ONE).unwrap());
    let call = async || {
        for _ in 0..100 {
            store.apply(Verb::Peek, &batch).await.unwrap();
            database.ended(&STATEMENT);
        }
    };
    call().await;

    let unsampled = parent("00");
    let span = tracer.http(&unsampled, "GET", None, "req_1");
    for span in [None, Some(&span)] {
        let mut least = usize::MAX;
        // The exporter's thread may allocate during some of the calls, but not during all.
        for _ in 0..20 {
            let region = Region::new(ALLOCATOR);
            within(span, call()).await;
            least = least.min(region.change().allocations);
        }
        assert_eq!(least, 0, "in a span: {}", span.is_some());
    }
    // The measurement works: sampled ones do.
    let span = tracer.http(&parent("01"), "GET", None, "req_1");
    let region = Region::new(ALLOCATOR);
    within(Some(&span), call()).await;
    assert!(region.change().allocations > 200);
}

fn parent(flags: &str) -> HeaderMap {
    let parent = format!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-{flags}");
    HeaderMap::from_iter([("traceparent".parse().unwrap(), parent.parse().unwrap())])
}
