//! Limits by subject and by address after authentication.

use axum::{Router, extract::Request, middleware, response::Response};
use headgate_guard::{
    Allowance, Backend, Class, Denied, Guard, GuardError, Policy, Reason, Routes, Subject,
};

use crate::support::{DAY, Server, by_clock, header, hello};

/// Extension that the authentication middleware inserts.
#[derive(Clone)]
struct Pubkey(String);

/// Accepts any identity: these tests are about the layers after authentication.
async fn authenticate(mut request: Request, next: middleware::Next) -> Response {
    let pubkey = request.headers().get("x-pubkey").map(|value| value.to_str().unwrap().to_owned());
    request.extensions_mut().extend(
        pubkey
            .map(Pubkey)
            .map(|pubkey| {
                let mut extensions = http::Extensions::new();
                extensions.insert(pubkey);
                extensions
            })
            .unwrap_or_default(),
    );
    next.run(request).await
}

/// Limits per day, so that nothing refills while a test runs.
fn policy() -> Policy {
    let protected = Class::new("protected")
        .unwrap()
        .by_address(Allowance::per(100, DAY).unwrap())
        .by_subject(Allowance::per(2, DAY).unwrap())
        .by_address_after_auth(Allowance::per(3, DAY).unwrap());
    Policy::new([protected]).unwrap()
}

fn guard(backend: Backend) -> Guard {
    Guard::builder(policy(), Routes::all("protected")).backend(backend).build().unwrap()
}

fn router(guard: &Guard) -> Router {
    hello()
        .layer(guard.layer_after_auth(|known| known.get::<Pubkey>().map(|key| key.0.as_str())))
        .layer(middleware::from_fn(authenticate))
        .layer(guard.layer())
}

async fn holds_all_or_nothing(backend: Backend) {
    let server = Server::start(router(&guard(backend))).await;
    let get = async |source: &str, pubkey: &str| {
        server.get_from(source, "/", &[("x-pubkey", pubkey)]).await.status().as_u16()
    };
    assert_eq!([get("127.0.0.1", "a").await, get("127.0.0.1", "a").await], [200, 200]);
    // Denied by subject; these requests do not count against the address.
    for _ in 0..5 {
        assert_eq!(get("127.0.0.1", "a").await, 429);
    }
    // The address has one left. Then it denies; these requests do not count against the subject.
    assert_eq!(get("127.0.0.1", "b").await, 200);
    for _ in 0..5 {
        assert_eq!(get("127.0.0.1", "b").await, 429);
    }
    // From another address, the subjects have the same units left.
    assert_eq!([get("127.0.0.2", "b").await, get("127.0.0.2", "b").await], [200, 429]);
    assert_eq!(get("127.0.0.2", "a").await, 429, "one subject cannot spread over addresses");
}

#[tokio::test]
async fn subject_and_address_must_both_admit_and_a_denial_takes_nothing() {
    holds_all_or_nothing(Backend::memory()).await;
}

#[tokio::test]
async fn subject_and_address_must_both_admit_in_any_store() {
    holds_all_or_nothing(by_clock().1).await;
}

#[tokio::test]
async fn a_request_without_a_subject_is_limited_by_address() {
    let server = Server::start(router(&guard(Backend::memory()))).await;
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(server.status("/").await);
    }
    assert_eq!(statuses, [200, 200, 200, 429]);
}

#[tokio::test]
async fn limit_headers_are_those_of_the_limit_that_denied() {
    let guard = guard(by_clock().1);
    let server = Server::start(router(&guard)).await;
    for _ in 0..2 {
        server.get("/", &[("x-pubkey", "a")]).await;
    }
    let denied = server.get("/", &[("x-pubkey", "a")]).await;
    assert_eq!(header(&denied, "ratelimit-policy"), r#""protected";q=2;w=86400"#);
    assert_eq!(header(&denied, "retry-after"), "43200");
}

#[tokio::test]
async fn limit_headers_are_those_of_the_innermost_layer() {
    let guard = Guard::builder(policy(), Routes::all("protected"));
    let server = Server::start(router(&guard.headers_when_admitted(true).build().unwrap())).await;
    let policy = r#""protected";q=2;w=86400"#;
    for status in [200, 200, 429] {
        let answer = server.get("/", &[("x-pubkey", "a")]).await;
        assert_eq!(answer.status(), status);
        assert_eq!(header(&answer, "ratelimit-policy"), policy);
    }
}

#[tokio::test]
async fn handlers_can_check_directly() {
    let guard = guard(Backend::memory());
    let (address, subject) = ("192.0.2.1".parse().unwrap(), Subject::new("a").unwrap());
    let ask = async || guard.check_subject("protected", address, &subject).await;
    assert_eq!(ask().await.unwrap().unwrap().remaining, 1);
    ask().await.unwrap();
    let error = ask().await.unwrap_err();
    let Denied { reason, retry_after, .. } = *error.denied().unwrap();
    assert_eq!(reason, Reason::Subject);
    // Half a day, less the time that the checks took.
    assert!((39_600..=43_200).contains(&retry_after.as_secs()), "{retry_after:?}");
}

#[tokio::test]
async fn an_invalid_subject_is_denied() {
    let server = Server::start(router(&guard(Backend::memory()))).await;
    let denied = server.get("/", &[("x-pubkey", "{a}")]).await;
    assert_eq!(denied.status(), 429);
}

#[tokio::test]
async fn checking_an_unknown_class_is_an_error() {
    let guard = guard(Backend::memory());
    let (address, subject) = ("192.0.2.1".parse().unwrap(), Subject::new("a").unwrap());
    let unknown = GuardError::UnknownClass("serach".to_owned());
    assert_eq!(guard.check("serach", address).await, Err(unknown.clone()));
    assert_eq!(guard.check_subject("serach", address, &subject).await, Err(unknown.clone()));
    let text = r#"unknown class "serach": the policy has no class of that name"#;
    assert_eq!(unknown.to_string(), text);
}
