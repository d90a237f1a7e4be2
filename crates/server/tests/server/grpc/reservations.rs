//! Reservations and refunds over gRPC, and streams that are metered.

use futures_util::stream;
use serde_json::json;
use tonic::{Code, Status, Streaming};

use super::client::{
    CancelReservationRequest, CheckRateLimitRequest, Client, GetReservationRequest,
    RefundCheckRequest, ReserveRequest, ReserveResponse, SettleReservationRequest,
    UseReservationRequest, UseReservationResponse, assert_invalid, connect, error_parts,
};
use crate::harness::Server;

/// A server on which users have `limit` units in a window that does not end, and a client.
async fn start(limit: u64) -> (Server, Client) {
    let server = Server::start(&[]).await;
    server
        .create_rule(&json!({
            "scope": "user", "identifier_pattern": "*", "limit": limit,
            "window_seconds": 8_640_000, "algorithm": "fixed_window",
        }))
        .await;
    let client = connect(server.grpc_address).await;
    (server, client)
}

fn check(user: &str, cost: i64) -> CheckRateLimitRequest {
    CheckRateLimitRequest {
        rule_id: "user".to_owned(),
        subject: user.to_owned(),
        cost,
        ..Default::default()
    }
}

async fn reserve(
    client: &Client,
    checks: Vec<CheckRateLimitRequest>,
    request_id: &str,
) -> Result<ReserveResponse, Status> {
    let request = ReserveRequest { checks, ttl_seconds: 3600, request_id: request_id.to_owned() };
    Ok(client.clone().reserve(request).await?.into_inner())
}

/// Status and stable code of an error.
fn code(status: &Status) -> (Code, String) {
    let (code, reason, ..) = error_parts(status);
    (code, reason)
}

#[tokio::test(flavor = "multi_thread")]
async fn units_are_reserved_used_settled_and_cancelled() {
    let (_server, client) = start(100).await;
    let made = reserve(&client, vec![check("u1", 40), check("u2", 5)], "r1").await.unwrap();
    assert!(made.allowed && !made.replayed && made.expires_at.is_some());
    assert_eq!((made.results[0].remaining, made.results[1].remaining), (60, 95));
    let again = reserve(&client, vec![check("u1", 40), check("u2", 5)], "r1").await.unwrap();
    assert_eq!((again.replayed, &again.id), (true, &made.id));
    let reused = reserve(&client, vec![check("u1", 41), check("u2", 5)], "r1").await.unwrap_err();
    let expected = (Code::AlreadyExists, "SYS_RATELIMIT_REQUEST_ID_CONFLICT".to_owned());
    assert_eq!(code(&reused), expected);
    let denied = reserve(&client, vec![check("u1", 61)], "").await.unwrap();
    assert!(!denied.allowed && denied.id.is_empty() && denied.results[0].retry_after_ms > 0);

    let id = made.id;
    let used = UseReservationRequest { id: id.clone(), costs: vec![30, 1], totals: vec![] };
    let used = client.clone().use_reservation(used).await.unwrap().into_inner();
    assert_eq!((used.held, used.stop), (Some(4), false));
    for totals in [vec![30, 1], vec![35, 1], vec![35, 1], vec![30, 0]] {
        let used = UseReservationRequest { id: id.clone(), costs: vec![], totals };
        client.clone().use_reservation(used).await.unwrap();
    }
    let shown = GetReservationRequest { id: id.clone() };
    let shown = client.clone().get_reservation(shown).await.unwrap().into_inner();
    assert_eq!((shown.status.as_str(), shown.results[0].held), ("pending", 25));
    let settle =
        |costs: Vec<u64>| SettleReservationRequest { id: id.clone(), costs, overdraft: false };
    let settled =
        client.clone().settle_reservation(settle(vec![35, 1])).await.unwrap().into_inner();
    assert_eq!((settled.settled, settled.owed), (35, 0));
    assert_eq!(settled.results[0].remaining, Some(65));
    let other = client.clone().settle_reservation(settle(vec![36, 1])).await.unwrap_err();
    let expected = (Code::FailedPrecondition, "SYS_RATELIMIT_RESERVATION_CONFLICT".to_owned());
    assert_eq!(code(&other), expected);

    let cancelled = reserve(&client, vec![check("u3", 5)], "").await.unwrap().id;
    let cancel = |id: &str| CancelReservationRequest { id: id.to_owned() };
    client.clone().cancel_reservation(cancel(&cancelled)).await.unwrap();
    let again = client.clone().cancel_reservation(cancel(&cancelled)).await.unwrap_err();
    let expected = (Code::FailedPrecondition, "SYS_RATELIMIT_RESERVATION_EXPIRED".to_owned());
    assert_eq!(code(&again), expected);
    let unknown = client.clone().cancel_reservation(cancel("rres_x")).await.unwrap_err();
    assert_eq!(code(&unknown), (Code::NotFound, "SYS_RATELIMIT_RESERVATION_NOT_FOUND".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_calls_are_refused() {
    let (_server, client) = start(100).await;
    let none = reserve(&client, vec![], "").await.unwrap_err();
    assert_invalid(&none, &[("checks", "checks must have 1 to 16 items")]);
    let large = reserve(&client, vec![check("u1", 101)], "").await.unwrap_err();
    let message = "cost 101 is above the limit of 100 and can never be admitted";
    assert_invalid(&large, &[("cost", message)]);
    let long =
        ReserveRequest { checks: vec![check("u1", 1)], ttl_seconds: 3_601, ..Default::default() };
    let long = client.clone().reserve(long).await.unwrap_err();
    assert_invalid(&long, &[("ttl_seconds", "ttl_seconds must be between 1 and 3600")]);
    let id = reserve(&client, vec![check("u1", 1)], "").await.unwrap().id;
    for (costs, totals, field, message) in [
        (vec![], vec![], "costs", "costs or totals is required"),
        (vec![1], vec![1], "totals", "totals cannot be combined with costs: send one of them"),
        (
            vec![],
            vec![u64::MAX],
            "totals",
            "total must be at most 9007199254740992, got 18446744073709551615",
        ),
        (
            vec![],
            vec![1, 1],
            "totals",
            "total must be one number, or a list of 1: one for each check; got 2",
        ),
    ] {
        let message_of = UseReservationRequest { id: id.clone(), costs, totals };
        let refused = client.clone().use_reservation(message_of).await.unwrap_err();
        assert_invalid(&refused, &[(field, message)]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_is_refunded_by_its_request_id() {
    let (_server, client) = start(100).await;
    let check = CheckRateLimitRequest { request_id: "r1".to_owned(), ..check("u1", 30) };
    let admitted = client.clone().check_rate_limit(check.clone()).await.unwrap().into_inner();
    assert!(admitted.allowed && admitted.remaining == 70);
    let again = client.clone().check_rate_limit(check.clone()).await.unwrap_err();
    assert_eq!(again.code(), Code::AlreadyExists);
    for replayed in [false, true] {
        let refund = RefundCheckRequest { check: Some(check.clone()) };
        let refunded = client.clone().refund_check(refund).await.unwrap().into_inner();
        assert_eq!((refunded.cost, refunded.remaining), (30, Some(100)));
        assert_eq!(refunded.replayed, replayed);
    }
    let other = CheckRateLimitRequest { request_id: "r2".to_owned(), ..check };
    let refund = RefundCheckRequest { check: Some(other) };
    assert_eq!(client.clone().refund_check(refund).await.unwrap_err().code(), Code::NotFound);
}

/// Charges a reservation one unit at a time until the server says stop; returns how many.
async fn meter(client: &Client, id: &str) -> u64 {
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    let messages = stream::unfold(receiver, async |mut receiver| {
        receiver.recv().await.map(|message: UseReservationRequest| (message, receiver))
    });
    let answers = client.clone().meter_reservation(messages).await.unwrap();
    let mut answers: Streaming<UseReservationResponse> = answers.into_inner();
    for produced in 1.. {
        let message = UseReservationRequest { id: id.to_owned(), costs: vec![1], totals: vec![] };
        sender.send(message).await.unwrap();
        if answers.message().await.unwrap().unwrap().stop {
            drop(sender);
            assert_eq!(answers.message().await.unwrap(), None, "it ends with its caller");
            return produced;
        }
    }
    unreachable!()
}

#[tokio::test(flavor = "multi_thread")]
async fn many_metered_streams_never_pass_the_limit() {
    let (server, client) = start(200).await;
    let mut streams = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let client = client.clone();
        streams.spawn(async move {
            let id = reserve(&client, vec![check("u1", 1)], "").await.unwrap().id;
            let produced = meter(&client, &id).await;
            let costs = vec![produced];
            let settle = SettleReservationRequest { id, costs, overdraft: false };
            let settled = client.clone().settle_reservation(settle).await.unwrap().into_inner();
            assert_eq!((settled.settled, settled.owed), (produced, 0));
            produced
        });
    }
    let produced: u64 = streams.join_all().await.into_iter().sum();
    assert_eq!(produced, 200);
    assert_eq!(server.check_user("u1").await.json()["allowed"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_metered_stream_ends_with_its_first_error() {
    let (_server, client) = start(100).await;
    let id = reserve(&client, vec![check("u1", 5)], "").await.unwrap().id;
    let uses = [(&*id, 5), ("rres_x", 1), (&*id, 5)];
    let uses = uses.map(|(id, cost)| UseReservationRequest {
        id: id.to_owned(),
        costs: vec![cost],
        totals: vec![],
    });
    let answers = client.clone().meter_reservation(stream::iter(uses)).await.unwrap();
    let mut answers = answers.into_inner();
    assert_eq!(answers.message().await.unwrap().unwrap().held, Some(5));
    let unknown = answers.message().await.unwrap_err();
    assert_eq!(code(&unknown), (Code::NotFound, "SYS_RATELIMIT_RESERVATION_NOT_FOUND".to_owned()));
    let shown = client.clone().get_reservation(GetReservationRequest { id }).await.unwrap();
    assert_eq!(shown.into_inner().results[0].held, 5, "the third use was not charged");
}
