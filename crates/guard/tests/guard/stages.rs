//! The second stage: by subject and by address, after authentication.

use axum::{Router, extract::Request, middleware, response::Response};
use headgate_guard::{
    Allowance, Backend, Class, Denied, Guard, GuardError, Policy, Reason, Routes, Subject,
};

use crate::support::{Server, by_clock, header, hello};

/// What the middleware that authenticates leaves behind.
#[derive(Clone)]
struct Pubkey(String);

/// Believes whoever a request says it is from: what is tested comes after it.
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

fn policy() -> Policy {
    let protected = Class::new("protected")
        .unwrap()
        .by_address(Allowance::per_minute(100).unwrap())
        .by_subject(Allowance::per_minute(2).unwrap())
        .by_address_after_auth(Allowance::per_minute(3).unwrap());
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
    // By subject, and nothing is taken from the address, however often.
    for _ in 0..5 {
        assert_eq!(get("127.0.0.1", "a").await, 429);
    }
    // The address has one left. Then it denies, and nothing is taken from the subject.
    assert_eq!(get("127.0.0.1", "b").await, 200);
    for _ in 0..5 {
        assert_eq!(get("127.0.0.1", "b").await, 429);
    }
    // Elsewhere the subjects have what they had left.
    assert_eq!([get("127.0.0.2", "b").await, get("127.0.0.2", "b").await], [200, 429]);
    assert_eq!(get("127.0.0.2", "a").await, 429, "one subject cannot spread over addresses");
}

#[tokio::test]
async fn subject_and_address_must_both_admit_and_a_denial_takes_nothing() {
    holds_all_or_nothing(Backend::memory()).await;
}

#[tokio::test]
async fn so_it_is_in_any_store() {
    holds_all_or_nothing(by_clock().1).await;
}

#[tokio::test]
async fn who_has_no_subject_is_limited_by_address() {
    let server = Server::start(router(&guard(Backend::memory()))).await;
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(server.status("/").await);
    }
    assert_eq!(statuses, [200, 200, 200, 429]);
}

#[tokio::test]
async fn a_denial_speaks_of_the_limit_that_denied() {
    let guard = guard(Backend::memory());
    let server = Server::start(router(&guard)).await;
    for _ in 0..2 {
        server.get("/", &[("x-pubkey", "a")]).await;
    }
    let denied = server.get("/", &[("x-pubkey", "a")]).await;
    assert_eq!(header(&denied, "ratelimit-policy"), r#""protected";q=2;w=60"#);
    assert_eq!(header(&denied, "retry-after"), "30");
}

#[tokio::test]
async fn who_is_admitted_and_who_is_not_hears_of_the_last_stage() {
    let guard = Guard::builder(policy(), Routes::all("protected"));
    let server = Server::start(router(&guard.tell_admitted(true).build().unwrap())).await;
    let policy = r#""protected";q=2;w=60"#;
    for status in [200, 200, 429] {
        let answer = server.get("/", &[("x-pubkey", "a")]).await;
        assert_eq!(answer.status(), status);
        assert_eq!(header(&answer, "ratelimit-policy"), policy);
    }
}

#[tokio::test]
async fn handlers_can_ask_by_themselves() {
    let guard = guard(Backend::memory());
    let (address, subject) = ("192.0.2.1".parse().unwrap(), Subject::new("a").unwrap());
    let ask = async || guard.check_subject("protected", address, &subject).await;
    assert_eq!(ask().await.unwrap().unwrap().remaining, 1);
    ask().await.unwrap();
    let error = ask().await.unwrap_err();
    let Denied { reason, retry_after, .. } = *error.denied().unwrap();
    assert_eq!(reason, Reason::Subject);
    assert!(retry_after.as_secs() >= 29, "{retry_after:?}");
}

#[tokio::test]
async fn who_cannot_be_counted_is_not_let_in() {
    let server = Server::start(router(&guard(Backend::memory()))).await;
    let denied = server.get("/", &[("x-pubkey", "{a}")]).await;
    assert_eq!(denied.status(), 429);
}

#[tokio::test]
async fn a_class_that_the_policy_does_not_have_is_an_error() {
    let guard = guard(Backend::memory());
    let (address, subject) = ("192.0.2.1".parse().unwrap(), Subject::new("a").unwrap());
    let unknown = GuardError::UnknownClass("serach".to_owned());
    assert_eq!(guard.check("serach", address).await, Err(unknown.clone()));
    assert_eq!(guard.check_subject("serach", address, &subject).await, Err(unknown.clone()));
    let text = r#"unknown class "serach": the policy has no class of that name"#;
    assert_eq!(unknown.to_string(), text);
}
