//! Reservations of several servers on one Redis.

use std::sync::Arc;

use headgate_testkit::{Redis, require};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{FOREVER, RESERVATIONS, error, user_request};
use crate::{
    harness::Server,
    redis::{PATIENT, ready},
};

/// A server on `redis` with a database of its own; all have the same default limit.
async fn start(redis: &Redis, limit: &str) -> Server {
    let url = redis.url();
    let keys = [
        ("redis.url", url.as_str()),
        PATIENT,
        ("ratelimit.default_limit", limit),
        ("ratelimit.default_window_seconds", &FOREVER.to_string()),
    ];
    let server = Server::start(&keys).await;
    ready(&server).await;
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn every_server_answers_for_the_ids_of_the_others() {
    let redis = require!(Redis::start());
    let (one, other) = (start(&redis, "1000").await, start(&redis, "1000").await);
    let id = one.reserve_user("u1", 400).await;
    assert_eq!(other.reservation(&id).await["results"][0]["held"], 400);
    let used = other.change(&id, "use", &json!({"cost": 100})).await.json();
    assert_eq!((&used["held"], &used["stop"]), (&json!(300), &json!(false)));
    let settled = other.change(&id, "settle", &json!({"cost": 150})).await;
    assert_eq!(settled.status, 200, "{}", settled.text);
    let again = one.change(&id, "settle", &json!({"cost": 150})).await;
    assert_eq!(again.json(), settled.json());
    let conflict = one.change(&id, "settle", &json!({"cost": 151})).await;
    assert_eq!(error(&conflict).1, "SYS_RATELIMIT_RESERVATION_CONFLICT");
    assert!(other.left("u1").await >= 850);

    let mut body = user_request("u2", 400);
    body["request_id"] = json!("r1");
    let made = one.post_json(RESERVATIONS, &body).await.json();
    let again = other.post_json(RESERVATIONS, &body).await;
    assert_eq!(again.header("idempotent-replayed"), "true");
    assert_eq!(
        (&again.json()["id"], &again.json()["expires_at"]),
        (&made["id"], &made["expires_at"])
    );
}

/// Many streams, each of which holds a unit and asks after each, through two servers.
#[tokio::test(flavor = "multi_thread")]
async fn many_streams_at_once_never_pass_the_limit() {
    const LIMIT: u64 = 150;
    let redis = require!(Redis::start());
    let limit = LIMIT.to_string();
    let servers = [Arc::new(start(&redis, &limit).await), Arc::new(start(&redis, &limit).await)];
    let mut streams = JoinSet::new();
    for stream in 0..16 {
        let (first, second) =
            (Arc::clone(&servers[stream % 2]), Arc::clone(&servers[1 - stream % 2]));
        streams.spawn(async move { produce(&first, &second).await });
    }
    let produced: u64 = streams.join_all().await.into_iter().sum();
    // The default limit is a bucket: in a window of 100 days nothing refills.
    assert_eq!(produced, LIMIT);
    assert_eq!(servers[0].left("u1").await, 0);
}

/// Spends units until there are no more, one at a time; returns how many.
async fn produce(first: &Server, second: &Server) -> u64 {
    let made: Value = first.post_json(RESERVATIONS, &user_request("u1", 1)).await.json();
    let Some(id) = made["id"].as_str() else { return 0 };
    for produced in 1.. {
        let server = if produced % 2 == 0 { first } else { second };
        let used = server.change(id, "use", &json!({"cost": 1})).await;
        assert_eq!(used.status, 200, "{}", used.text);
        if used.json()["stop"] == true {
            let settled = server.change(id, "settle", &json!({"cost": produced})).await.json();
            assert_eq!((&settled["settled"], &settled["owed"]), (&json!(produced), &json!(0)));
            return produced;
        }
    }
    unreachable!()
}

/// Streams whose every report is sent to both servers at once, as by a client that does not wait for
/// an answer before it retries.
#[tokio::test(flavor = "multi_thread")]
async fn streams_that_retry_every_use_never_pass_the_limit() {
    const LIMIT: u64 = 100;
    let redis = require!(Redis::start());
    let limit = LIMIT.to_string();
    let servers = Arc::new([start(&redis, &limit).await, start(&redis, &limit).await]);
    let mut streams = JoinSet::new();
    for _ in 0..8 {
        let servers = Arc::clone(&servers);
        streams.spawn(async move { produce_with_retries(&servers).await });
    }
    let produced: u64 = streams.join_all().await.into_iter().sum();
    assert_eq!(produced, LIMIT);
    assert_eq!(servers[0].left("u1").await, 0);
}

async fn produce_with_retries([one, other]: &[Server; 2]) -> u64 {
    let made: Value = one.post_json(RESERVATIONS, &user_request("u1", 1)).await.json();
    let Some(id) = made["id"].as_str() else { return 0 };
    for produced in 1.. {
        let (total, late) = (json!({"total": produced}), json!({"total": produced - 1}));
        let (first, again, _) = tokio::join!(
            one.change(id, "use", &total),
            other.change(id, "use", &total),
            other.change(id, "use", &late),
        );
        assert_eq!((first.status.as_u16(), again.status.as_u16()), (200, 200), "{}", first.text);
        assert_eq!(first.json()["held"], again.json()["held"]);
        if first.json()["stop"] == true {
            let settled = one.change(id, "settle", &json!({"cost": produced})).await.json();
            assert_eq!((&settled["settled"], &settled["owed"]), (&json!(produced), &json!(0)));
            return produced;
        }
    }
    unreachable!()
}

/// A settlement that Redis did not confirm is an error, never an answer that is made up.
#[tokio::test(flavor = "multi_thread")]
async fn without_redis_nothing_is_settled_that_redis_holds() {
    let redis = require!(Redis::start());
    let server = start(&redis, "100").await;
    let id = server.reserve_user("u1", 40).await;
    redis.kill();
    let settle = json!({"cost": 10});
    let (status, code, _) = error(&server.change(&id, "settle", &settle).await);
    assert_eq!((status, &*code), (503, "SYS_RATELIMIT_STORE_UNAVAILABLE"));
    let shown = server.get(&format!("{RESERVATIONS}/{id}")).await;
    assert_eq!(shown.status, 503, "{}", shown.text);
    // The failure mode decides new ones, as it decides checks; this server can settle them.
    let local = server.reserve_user("u2", 40).await;
    let settled = server.change(&local, "settle", &settle).await;
    assert_eq!((settled.status.as_u16(), &settled.json()["settled"]), (200, &json!(10)));
}
