//! Limits by key: API keys, headers, claims, and requests without one.

use std::{sync::Arc, time::Duration};

use axum::body::Body;
use headgate_guard::{
    Allowance, Backend, Class, Guard, KeyExtractor, MissingKey, Policy, Reason, Rejections, Routes,
    Surface,
};
use headgate_store_redis::{RedisConfig, RedisStore};
use headgate_testkit::{Redis, require};
use http::{HeaderName, HeaderValue, Request, Response, StatusCode, Version};
use tower::{Layer as _, ServiceExt};

use crate::support::{DAY, Server, by_clock, header, hello};

const TENANT: HeaderName = HeaderName::from_static("x-tenant");

/// Two a day, so that nothing refills while a test runs.
fn guard(backend: Backend) -> Guard {
    let class = Class::new("api").unwrap().by_key(Allowance::per(2, DAY).unwrap());
    let policy = Policy::new([class]).unwrap();
    Guard::builder(policy, Routes::all("api")).backend(backend).build().unwrap()
}

async fn server(guard: &Guard, key: KeyExtractor, missing: MissingKey) -> Server {
    Server::start(hello().layer(guard.layer_by_key(key, missing))).await
}

async fn counts_each_key_separately(backend: Backend) {
    let guard = guard(backend);
    let server = server(&guard, KeyExtractor::api_key(), MissingKey::Refuse).await;
    let get = async |key: &str| server.get("/", &[("x-api-key", key)]).await.status().as_u16();
    assert_eq!([get("a").await, get("a").await, get("a").await], [200, 200, 429]);
    assert_eq!(get("b").await, 200);
    let denied = server.get("/", &[("x-api-key", "a")]).await;
    // Half a day, less the time that the requests took.
    let wait: u64 = header(&denied, "retry-after").parse().unwrap();
    assert!((39_600..=43_200).contains(&wait), "{wait}");
    assert_eq!(header(&denied, "ratelimit-policy"), r#""api";q=2;w=86400"#);
}

#[tokio::test]
async fn each_key_has_an_allowance_of_its_own() {
    counts_each_key_separately(Backend::memory()).await;
    counts_each_key_separately(by_clock().1).await;
}

#[tokio::test]
async fn combined_keys_are_counted_together() {
    let key = KeyExtractor::api_key().and(KeyExtractor::header(TENANT));
    let server = server(&guard(Backend::memory()), key, MissingKey::Refuse).await;
    let get = async |key: &str, tenant: &str| {
        server.get("/", &[("x-api-key", key), ("x-tenant", tenant)]).await.status().as_u16()
    };
    assert_eq!([get("a", "1").await, get("a", "1").await, get("a", "1").await], [200, 200, 429]);
    assert_eq!([get("a", "2").await, get("b", "1").await], [200, 200]);
    // The boundary between the parts is significant.
    assert_eq!([get("ab", "c").await, get("ab", "c").await, get("a", "bc").await], [200; 3]);
}

#[tokio::test]
async fn equal_values_of_different_headers_are_different_keys() {
    let guard = guard(Backend::memory());
    let by_api_key = guard.layer_by_key(KeyExtractor::api_key(), MissingKey::Refuse);
    let by_tenant = guard.layer_by_key(KeyExtractor::header(TENANT), MissingKey::Refuse);
    let server = Server::start(hello().layer(by_api_key).layer(by_tenant)).await;
    let headers = [("x-api-key", "a"), ("x-tenant", "a")];
    let get = async || server.get("/", &headers).await.status().as_u16();
    assert_eq!([get().await, get().await, get().await], [200, 200, 429]);
}

#[tokio::test]
async fn a_missing_key_can_fall_back_to_the_address() {
    let guard = guard(Backend::memory());
    let server = server(&guard, KeyExtractor::api_key(), MissingKey::UseAddress).await;
    let get = async |from: &str| server.get_from(from, "/", &[]).await.status().as_u16();
    let statuses = [get("127.0.0.1").await, get("127.0.0.1").await, get("127.0.0.1").await];
    assert_eq!(statuses, [200, 200, 429]);
    assert_eq!(get("127.0.0.2").await, 200);
    // The key has an allowance of its own, even if its text is an address.
    assert_eq!(server.get("/", &[("x-api-key", "127.0.0.1")]).await.status(), 200);
}

#[tokio::test]
async fn missing_keys_can_share_one_allowance() {
    let guard = guard(Backend::memory());
    let server = server(&guard, KeyExtractor::api_key(), MissingKey::Share).await;
    let get = async |from: &str| server.get_from(from, "/", &[]).await.status().as_u16();
    let statuses = [get("127.0.0.1").await, get("127.0.0.2").await, get("127.0.0.3").await];
    assert_eq!(statuses, [200, 200, 429]);
}

#[tokio::test]
async fn a_missing_key_can_be_refused() {
    let rejections = Arc::new(Rejections::default());
    let guard = guard(Backend::memory().observer(Arc::clone(&rejections) as _));
    let server = server(&guard, KeyExtractor::api_key(), MissingKey::Refuse).await;
    let refused = server.get("/", &[]).await;
    assert_eq!((refused.status().as_u16(), header(&refused, "retry-after")), (400, ""));
    let body = r#"{"code":"BAD_REQUEST","message":"request has no rate limit key","details":null}"#;
    assert_eq!(refused.body(), body);
    let twice = [("x-api-key", "a"), ("x-api-key", "b")];
    assert_eq!(server.get("/", &twice).await.status(), 400, "it is not clear which one counts");
    assert_eq!(rejections.count(Surface::Http, Reason::MissingKey), 2);
}

#[tokio::test]
async fn a_missing_key_over_grpc_is_an_invalid_argument() {
    let layer = guard(Backend::memory()).layer_by_key(KeyExtractor::api_key(), MissingKey::Refuse);
    let mut call = Request::post("/").header("content-type", "application/grpc");
    call = call.version(Version::HTTP_2);
    let refused = layer.layer(hello()).oneshot(call.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(refused.headers()["grpc-status"], "3");
}

#[tokio::test]
async fn a_custom_response_to_a_missing_key_becomes_a_400() {
    let layer = guard(Backend::memory())
        .layer_by_key(KeyExtractor::api_key(), MissingKey::Refuse)
        .respond_with(|denial| {
            let mut response = Response::new(Body::from("slow down"));
            if denial.denied().surface == Surface::Grpc {
                response.headers_mut().insert("grpc-status", HeaderValue::from_static("8"));
            } else {
                *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
            }
            response
        });
    let request = Request::get("/").body(Body::empty()).unwrap();
    assert_eq!(layer.layer(hello()).oneshot(request).await.unwrap().status(), 400);
    let call = Request::post("/").header("content-type", "application/grpc");
    let call = call.version(Version::HTTP_2).body(Body::empty()).unwrap();
    let refused = layer.layer(hello()).oneshot(call).await.unwrap();
    assert_eq!(refused.status(), 200);
    assert_eq!(refused.headers()["grpc-status"], "3");
}

#[tokio::test]
async fn counting_by_key_needs_no_address() {
    let layer = guard(Backend::memory()).layer_by_key(KeyExtractor::api_key(), MissingKey::Refuse);
    let request = Request::get("/").header("x-api-key", "a").body(Body::empty()).unwrap();
    assert_eq!(layer.layer(hello()).oneshot(request).await.unwrap().status(), 200);
    let layer =
        guard(Backend::memory()).layer_by_key(KeyExtractor::address(), MissingKey::UseAddress);
    let request = Request::get("/").body(Body::empty()).unwrap();
    assert_eq!(layer.layer(hello()).oneshot(request).await.unwrap().status(), 500);
}

#[tokio::test]
async fn a_class_without_an_allowance_by_key_is_not_limited() {
    let guard = crate::support::guard(1);
    let server = server(&guard, KeyExtractor::api_key(), MissingKey::Refuse).await;
    assert_eq!([server.status("/").await, server.status("/").await], [200, 200]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_sees_a_digest_instead_of_the_api_key() {
    let redis = require!(Redis::start());
    // A busy machine is not an outage.
    let patience = Duration::from_secs(30);
    let config = RedisConfig::from_url(&redis.url()).unwrap().timeout(patience);
    let config = config.connect_timeout(patience);
    let guard = guard(Backend::on(Arc::new(RedisStore::connect(config))));
    let server = server(&guard, KeyExtractor::api_key(), MissingKey::Refuse).await;
    let get = async || server.get("/", &[("x-api-key", "s3cr3t")]).await.status().as_u16();
    assert_eq!([get().await, get().await, get().await], [200, 200, 429]);
    let key = redis.cli(&["KEYS", "*"]);
    let digits = key.strip_prefix("guard:api:key:").expect("a key of this class");
    assert_eq!(digits.len(), 32);
    assert!(digits.bytes().all(|byte| byte.is_ascii_hexdigit()), "{digits}");
}
