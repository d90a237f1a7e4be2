//! Signing in.

use headgate::Timestamp;
use hyper::Request;
use nostr::event::Kind;
use serde_json::json;

use super::harness::{START, Server, keys, sign};

const HERE: &str = "198.51.100.1";

#[tokio::test]
async fn a_signed_challenge_yields_a_token() {
    let server = Server::start().await;
    server.get_from(HERE, "/v1/trending").await.is_refused(401, "AUTH_REQUIRED");
    let ada = server.client(1, HERE).await;
    let reply = ada.get("/v1/trending").await;
    reply.is(200);
    assert_eq!(reply.json(), json!({"items": []}));

    let forged = Request::get("/v1/trending").header("authorization", "Bearer nonsense");
    let refused = server.send(forged.header("x-forwarded-for", HERE), "").await;
    refused.is_refused(401, "AUTH_FAILED");
    assert_eq!(refused.header("www-authenticate"), Some("Bearer"));

    // Tokens expire.
    server.clock.set(Timestamp::from_micros((START + 900) * 1_000_000));
    ada.get("/v1/trending").await.is_refused(401, "AUTH_FAILED");
}

#[tokio::test]
async fn a_challenge_must_be_signed_in_time_by_its_key_and_only_once() {
    let server = Server::with(&[("CN_PUBLIC_URL", "wss://node.example/relay")]).await;
    server.configure("user-api", json!({"rate_limit": {"auth_per_minute": 100}})).await;
    let [ada, eve] = [keys(1), keys(2)];
    let challenge = server.challenge(&ada, HERE).await;
    let relay = ["relay", "wss://node.example/relay"];
    let signed = ["challenge", challenge.as_str()];
    let good = sign(&ada, Kind::Authentication, &[signed, relay], START);

    let mut forged = good.clone();
    forged.content = "something else".to_owned();
    let wrong = [
        sign(&ada, Kind::Authentication, &[signed], START),
        sign(&ada, Kind::Authentication, &[signed, ["relay", "wss://evil.example"]], START),
        sign(&eve, Kind::Authentication, &[signed, relay], START),
        sign(&ada, Kind::Authentication, &[["challenge", "made up"], relay], START),
        sign(&ada, Kind::Authentication, &[relay], START),
        sign(&ada, Kind::Authentication, &[signed, relay], START - 601),
        sign(&ada, Kind::Authentication, &[signed, relay], START + 601),
        forged,
    ];
    for event in wrong {
        server.verify(&event, HERE).await.is_refused(401, "AUTH_FAILED");
    }
    server.verify(&good, HERE).await.is(200);
    server.verify(&good, HERE).await.is_refused(401, "AUTH_FAILED");
}

#[tokio::test]
async fn without_a_public_url_logins_are_signed_for_the_listening_address() {
    let server = Server::start().await;
    let ada = keys(1);
    let challenge = server.challenge(&ada, HERE).await;
    let signed = |relay: &str| {
        let tags = [["challenge", challenge.as_str()], ["relay", relay]];
        sign(&ada, Kind::Authentication, &tags, START)
    };
    let elsewhere = signed("wss://elsewhere.example/relay");
    server.verify(&elsewhere, HERE).await.is_refused(401, "AUTH_FAILED");
    let nowhere = sign(&ada, Kind::Authentication, &[["challenge", &challenge]], START);
    server.verify(&nowhere, HERE).await.is_refused(401, "AUTH_FAILED");
    server.verify(&signed(&server.relay_url()), HERE).await.is(200);
}

#[tokio::test]
async fn invalid_requests_are_refused_with_a_reason() {
    let server = Server::start().await;
    server.configure("user-api", json!({"rate_limit": {"auth_per_minute": 100}})).await;
    for pubkey in ["", "zz", &"0".repeat(63), &"é".repeat(32)] {
        let reply = server.post(HERE, "/v1/auth/challenge", &json!({"pubkey": pubkey})).await;
        reply.is_refused(400, "INVALID_PUBKEY");
    }
    for body in ["", "[]", "{}", "{\"pubkey\": 3}", "\u{1F980}"] {
        let request = Request::post("/v1/auth/challenge").header("x-forwarded-for", HERE);
        server.send(request, body).await.is_refused(400, "INVALID_JSON");
    }
    let note = sign(&keys(1), Kind::TextNote, &[["challenge", "x"]], START);
    for event in [json!({}), json!("{"), json!(null), json!(note)] {
        let reply = server.post(HERE, "/v1/auth/verify", &json!({"auth_event_json": event})).await;
        reply.is_refused(400, "INVALID_EVENT");
    }
    let large = json!({"pubkey": "x".repeat(20_000)});
    server.post(HERE, "/v1/auth/challenge", &large).await.is_refused(413, "PAYLOAD_TOO_LARGE");
    server.get_from(HERE, "/v1/auth/challenge").await.is_refused(405, "METHOD_NOT_ALLOWED");
    server.get_from("198.51.100.2", "/nowhere").await.is_refused(404, "NOT_FOUND");
    let odd = "/v1/bootstrap/topics/%ff/services";
    server.get_from("198.51.100.2", odd).await.is_refused(404, "NOT_FOUND");
}

#[tokio::test]
async fn nodes_with_one_secret_accept_each_others_tokens() {
    let secret = ("CN_TOKEN_SECRET", "0123456789abcdef0123456789abcdef");
    let [one, other] = [Server::with(&[secret]).await, Server::with(&[secret]).await];
    let token = one.client(1, HERE).await.token.clone();
    let bearer = format!("Bearer {token}");
    let request = || Request::get("/v1/trending").header("authorization", &bearer);
    other.send(request(), "").await.is(200);
    Server::start().await.send(request(), "").await.is_refused(401, "AUTH_FAILED");
}
