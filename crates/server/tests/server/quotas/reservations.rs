//! Reservations and refunds over REST and gRPC.

use futures_util::stream;
use headgate_testkit::require;
use serde_json::{Value, json};
use tonic::Code;

use super::{
    QUOTAS,
    backend::Backend,
    error,
    grpc::client::{
        CancelQuotaReservationRequest, Client, GetQuotaReservationRequest,
        IncrementQuotaUsageRequest, RefundQuotaUsageRequest, ReserveQuotaRequest,
        SettleQuotaReservationRequest, UseQuotaReservationRequest, connect, error_parts,
    },
    policy,
};
use crate::{
    grpc::client::by,
    harness::{Reply, Server},
};

impl Server {
    async fn post_quota(&self, path: &str, body: &Value) -> Reply {
        self.admin("POST", &format!("{QUOTAS}/{path}"), &body.to_string()).await
    }

    /// Reserves with a TTL that does not end during a test; returns the id.
    async fn reserve(&self, quota: &str, amount: u64) -> String {
        let body = json!({"amount": amount, "ttl_seconds": 3600});
        let reply = self.post_quota(&format!("{quota}/reservations"), &body).await;
        assert_eq!(reply.status, 201, "{}", reply.text);
        reply.json()["id"].as_str().unwrap().to_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rest_on_the_embedded_default() {
    contract(&Server::start(&[]).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rest_on_postgres_and_redis() {
    let backend = require!(Backend::start());
    contract(&backend.server().await).await;
}

async fn contract(server: &Server) {
    let id = server.create_quota(&policy("reserving", 100)).await;
    reserve_and_settle(server, &id).await;
    streams(server, &id).await;
    refunds(server, &id).await;
}

async fn reserve_and_settle(server: &Server, id: &str) {
    let body = json!({"amount": 40, "ttl_seconds": 3600, "request_id": "a"});
    let made = server.post_quota(&format!("{id}/reservations"), &body).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let again = server.post_quota(&format!("{id}/reservations"), &body).await;
    assert_eq!((again.status.as_u16(), again.json()), (201, made.json()));
    assert_eq!(again.headers["idempotent-replayed"], "true");
    let made = made.json();
    let one = made["id"].as_str().unwrap().to_owned();
    assert!(made["expires_at"].is_string() && made["status"] == "pending");
    let usage = |key: &str| made[key].clone();
    assert_eq!([usage("used"), usage("reserved"), usage("remaining")], [0, 40, 60]);
    assert_eq!((usage("allowed"), usage("exceeded")), (json!(true), json!(false)));

    let shown = server.quota_usage(id).await.json();
    assert_eq!((&shown["used"], &shown["reserved"]), (&json!(0), &json!(40)));
    let denied = server.increment(id, 61, None).await;
    let expected = "quota exceeded for reserving: 40/100 (monthly)".to_owned();
    assert_eq!(error(&denied), (429, "SYS_QUOTA_EXCEEDED".to_owned(), expected));
    let denied = server.post_quota(&format!("{id}/reservations"), &json!({"amount": 61})).await;
    assert_eq!(error(&denied).1, "SYS_QUOTA_EXCEEDED");
    assert!(denied.headers.contains_key("retry-after"));

    let settle = format!("{id}/reservations/{one}/settle");
    let settled = server.post_quota(&settle, &json!({"amount": 25})).await;
    assert_eq!(settled.status, 200, "{}", settled.text);
    let body = settled.json();
    let numbers = ["settled", "returned", "owed", "used", "reserved", "remaining"];
    assert_eq!(numbers.map(|name| body[name].clone()), [25, 15, 0, 25, 0, 75]);
    let again = server.post_quota(&settle, &json!({"amount": 25})).await;
    assert_eq!((again.status.as_u16(), again.json()), (200, settled.json()));
    let other = server.post_quota(&settle, &json!({"amount": 26})).await;
    let message = format!(
        "quota reservation {one} was settled for 25 without overdraft: nothing was changed"
    );
    assert_eq!(error(&other), (409, "SYS_QUOTA_RESERVATION_CONFLICT".to_owned(), message));
    let cancelled = server.post_quota(&format!("{id}/reservations/{one}/cancel"), &json!({})).await;
    assert_eq!(error(&cancelled).1, "SYS_QUOTA_RESERVATION_CONFLICT");
    let shown = server.admin("GET", &format!("{QUOTAS}/{id}/reservations/{one}"), "").await.json();
    assert_eq!((&shown["status"], &shown["settled"]), (&json!("settled"), &json!(25)));
    assert_eq!((&shown["amount"], &shown["held"]), (&json!(40), &json!(0)));

    let one = server.reserve(id, 10).await;
    let cancel = format!("{id}/reservations/{one}/cancel");
    let cancelled = server.post_quota(&cancel, &json!({})).await;
    assert_eq!((cancelled.status.as_u16(), &cancelled.json()["returned"]), (200, &json!(10)));
    let again = server.post_quota(&cancel, &json!({})).await;
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert_eq!(server.used(id).await, 25);
}

async fn streams(server: &Server, id: &str) {
    let one = server.reserve(id, 30).await;
    let spend = format!("{id}/reservations/{one}/use");
    let used = async |amount: u64, request_id: &str| {
        let body = json!({"amount": amount, "request_id": request_id});
        let reply = server.post_quota(&spend, &body).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        let body = reply.json();
        ["charged", "owed", "held", "stop"].map(|name| body[name].clone())
    };
    assert_eq!(used(30, "1").await, [json!(30), json!(0), json!(30), json!(false)]);
    assert_eq!(used(30, "1").await, [json!(30), json!(0), json!(30), json!(false)]);
    assert_eq!(used(30, "2").await, [json!(30), json!(0), json!(15), json!(false)]);
    // 15 are left of 100.
    assert_eq!(used(20, "3").await, [json!(15), json!(5), json!(0), json!(true)]);
    let settle = format!("{id}/reservations/{one}/settle");
    let settled = server.post_quota(&settle, &json!({"amount": 80})).await.json();
    let numbers = ["settled", "returned", "owed", "used", "remaining"];
    assert_eq!(numbers.map(|name| settled[name].clone()), [75, 0, 5, 100, 0]);
}

async fn refunds(server: &Server, id: &str) {
    let reset = server.post_quota(&format!("{id}/usage/reset"), &json!({"reason": "next"})).await;
    assert_eq!(reset.status, 200, "{}", reset.text);
    server.increment(id, 30, Some("r")).await;
    let refund = format!("{id}/usage/refund");
    let done = server.post_quota(&refund, &json!({"request_id": "r"})).await;
    assert_eq!(done.status, 200, "{}", done.text);
    assert_eq!((&done.json()["refunded"], &done.json()["used"]), (&json!(30), &json!(0)));
    let again = server.post_quota(&refund, &json!({"request_id": "r"})).await;
    assert_eq!(again.json(), done.json());
    assert_eq!(again.headers["idempotent-replayed"], "true");
    let charged = server.increment(id, 30, Some("r")).await;
    assert_eq!(error(&charged).1, "SYS_QUOTA_REQUEST_REFUNDED");
    let unknown = server.post_quota(&refund, &json!({"request_id": "s"})).await;
    let message = "nothing was charged under request_id s".to_owned();
    assert_eq!(error(&unknown), (404, "SYS_QUOTA_REQUEST_NOT_FOUND".to_owned(), message));
    assert_eq!(server.used(id).await, 0);
}

#[tokio::test]
async fn invalid_requests_name_their_fields_and_take_nothing() {
    let server = Server::start(&[]).await;
    let id = server.create_quota(&policy("invalid", 10)).await;
    let one = server.reserve(&id, 2).await;
    let reservations = format!("{id}/reservations");
    let (spend, settle) =
        (format!("{reservations}/{one}/use"), format!("{reservations}/{one}/settle"));
    let refund = format!("{id}/usage/refund");
    for (path, body, message) in [
        (&reservations, json!({}), "amount is required"),
        (&reservations, json!({"amount": 0}), "amount must be greater than 0"),
        (&reservations, json!({"amount": 11}), "amount must be at most the limit of 10"),
        (&reservations, json!({"amount": "1"}), "amount must be a whole number, got a string"),
        (
            &reservations,
            json!({"amount": 1, "ttl_seconds": 0}),
            "ttl_seconds must be between 1 and 3600",
        ),
        (
            &reservations,
            json!({"amount": 1, "ttl_seconds": 3601}),
            "ttl_seconds must be between 1 and 3600",
        ),
        (
            &reservations,
            json!({"amount": 1, "ttl_seconds": "30s"}),
            "ttl_seconds must be a whole number, got a string",
        ),
        (&spend, json!({"amount": -1}), "amount must not be negative"),
        (&settle, json!({}), "amount is required"),
        (&settle, json!({"amount": -1}), "amount must not be negative"),
        (
            &settle,
            json!({"amount": 1, "overdraft": "yes"}),
            "overdraft must be a boolean, got a string",
        ),
        (&refund, json!({}), "request_id is required"),
    ] {
        let reply = server.post_quota(path, &body).await;
        assert_eq!(reply.status, 400, "{path} {body}: {}", reply.text);
        let (_, said) = reply.details().remove(0);
        assert_eq!(said, message, "{path} {body}");
    }
    let misspelt = server.post_quota(&reservations, &json!({"amount": 1, "ttl": 30})).await;
    assert_eq!(misspelt.status, 400, "{}", misspelt.text);
    for unknown in ["qres_2026-02_0", "nonsense", "%00"] {
        for verb in ["settle", "use"] {
            let path = format!("{reservations}/{unknown}/{verb}");
            let reply = server.post_quota(&path, &json!({"amount": 1})).await;
            assert_eq!(error(&reply).1, "SYS_QUOTA_RESERVATION_NOT_FOUND", "{path}");
        }
    }
    let elsewhere = format!("quota_unknown/reservations/{one}/settle");
    let elsewhere = server.post_quota(&elsewhere, &json!({"amount": 1})).await;
    assert_eq!(error(&elsewhere).1, "SYS_QUOTA_NOT_FOUND");
    let shown = server.quota_usage(&id).await.json();
    assert_eq!((&shown["used"], &shown["reserved"]), (&json!(0), &json!(2)));
}

#[tokio::test]
async fn reservations_are_counted_by_operation_and_outcome() {
    let server = Server::start(&[]).await;
    let id = server.create_quota(&policy("counted", 10)).await;
    let one = server.reserve(&id, 6).await;
    server.post_quota(&format!("{id}/reservations"), &json!({"amount": 6})).await;
    let settle = format!("{id}/reservations/{one}/settle");
    for amount in [5, 5, 4] {
        server.post_quota(&settle, &json!({"amount": amount})).await;
    }
    server.post_quota(&format!("{id}/usage/refund"), &json!({"request_id": "x"})).await;
    let metrics = server.get("/metrics").await.text;
    for (operation, outcome, count) in [
        ("reserve", "done", 1),
        ("reserve", "exceeded", 1),
        ("settle", "done", 1),
        ("settle", "replayed", 1),
        ("settle", "invalid", 1),
        ("cancel", "done", 0),
        ("use", "expired", 0),
    ] {
        let line = format!(
            r#"headgate_quota_reservations_total{{operation="{operation}",outcome="{outcome}",service="headgate"}} {count}"#
        );
        assert!(metrics.contains(&line), "{line}\n{metrics}");
    }
    let line = r#"headgate_quota_refunds_total{outcome="invalid",service="headgate"} 1"#;
    assert!(metrics.contains(line), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn grpc_does_the_same() {
    let server = Server::start(&[]).await;
    let caller = Caller {
        token: server.admin_token.clone().unwrap(),
        quota_id: server.create_quota(&policy("grpc", 10)).await,
        client: connect(server.grpc_address).await,
    };
    let reservation_id = caller.reserves().await;
    caller.meters(&reservation_id).await;
    caller.settles(reservation_id).await;
    let reset = format!("{}/usage/reset", caller.quota_id);
    server.post_quota(&reset, &json!({"reason": "next"})).await;
    caller.refunds().await;
}

/// A client of a quota over gRPC.
struct Caller {
    client: Client,
    token: String,
    quota_id: String,
}

impl Caller {
    /// Reserves 6 of 10; returns the id.
    async fn reserves(&self) -> String {
        let reserve = async |amount, ttl_seconds, request_id: Option<&str>| {
            let (quota_id, request_id) = (self.quota_id.clone(), request_id.map(str::to_owned));
            let message = ReserveQuotaRequest { quota_id, amount, ttl_seconds, request_id };
            self.client.clone().reserve_quota(by(&self.token, message)).await
        };
        let made = reserve(6, 0, Some("a")).await.unwrap().into_inner();
        let again = reserve(6, 0, Some("a")).await.unwrap().into_inner();
        assert!(made.allowed && !made.replayed && again.replayed);
        assert_eq!(made.reservation, again.reservation);
        let one = made.reservation.unwrap();
        let left = one.expires_at.unwrap().seconds - one.created_at.unwrap().seconds;
        assert_eq!((left, one.held, one.status.as_str()), (30, 6, "pending"));
        let usage = made.usage.unwrap();
        assert_eq!((usage.used, usage.reserved, usage.remaining), (0, 6, 4));
        let refused = reserve(5, 0, Some("a")).await.unwrap_err();
        assert_eq!(error_parts(&refused).1, "SYS_QUOTA_REQUEST_ID_CONFLICT");
        let refused = reserve(5, 3_601, None).await.unwrap_err();
        assert_eq!(error_parts(&refused).3[0].0, "ttl_seconds");
        assert_eq!(reserve(5, 0, None).await.unwrap_err().code(), Code::ResourceExhausted);
        one.id
    }

    /// Uses nothing, twice, over a stream, which needs a token as other calls do.
    async fn meters(&self, reservation_id: &str) {
        let message = UseQuotaReservationRequest {
            quota_id: self.quota_id.clone(),
            reservation_id: reservation_id.to_owned(),
            amount: 0,
            request_id: None,
        };
        let messages = || stream::iter([message.clone(), message.clone()]);
        let mut client = self.client.clone();
        let metered = client.meter_quota_reservation(by(&self.token, messages())).await;
        let mut answers = metered.unwrap().into_inner();
        for _ in 0..2 {
            let used = answers.message().await.unwrap().unwrap();
            assert_eq!((used.reservation.unwrap().held, used.stop), (6, false));
        }
        assert_eq!(answers.message().await.unwrap(), None);
        let refused = client.meter_quota_reservation(messages()).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unauthenticated);
    }

    async fn settles(&self, reservation_id: String) {
        let (client, quota_id) = (&self.client, self.quota_id.clone());
        let message = UseQuotaReservationRequest {
            quota_id: quota_id.clone(),
            reservation_id: reservation_id.clone(),
            amount: 2,
            request_id: None,
        };
        let used = client.clone().use_quota_reservation(by(&self.token, message)).await;
        let used = used.unwrap().into_inner();
        assert_eq!((used.charged, used.owed, used.stop), (2, 0, false));
        let settle = |amount| SettleQuotaReservationRequest {
            quota_id: quota_id.clone(),
            reservation_id: reservation_id.clone(),
            amount,
            overdraft: true,
        };
        let done = client.clone().settle_quota_reservation(by(&self.token, settle(13))).await;
        let done = done.unwrap().into_inner();
        let (settled, usage) = (done.reservation.unwrap(), done.usage.unwrap());
        assert_eq!((settled.settled, settled.returned, settled.owed), (13, 0, 0));
        assert_eq!((usage.used, usage.remaining), (13, 0));
        let refused = client.clone().settle_quota_reservation(by(&self.token, settle(2))).await;
        let (code, reason, ..) = error_parts(&refused.unwrap_err());
        assert_eq!((code, &*reason), (Code::FailedPrecondition, "SYS_QUOTA_RESERVATION_CONFLICT"));
        let unknown = CancelQuotaReservationRequest {
            quota_id: quota_id.clone(),
            reservation_id: "qres_2026-02_0".to_owned(),
        };
        let refused = client.clone().cancel_quota_reservation(by(&self.token, unknown)).await;
        let (code, reason, ..) = error_parts(&refused.unwrap_err());
        assert_eq!((code, &*reason), (Code::NotFound, "SYS_QUOTA_RESERVATION_NOT_FOUND"));
        let get = GetQuotaReservationRequest { quota_id, reservation_id };
        let got = client.clone().get_quota_reservation(by(&self.token, get)).await.unwrap();
        assert_eq!(got.into_inner().reservation, Some(settled));
    }

    async fn refunds(&self) {
        let (client, quota_id) = (&self.client, self.quota_id.clone());
        let request_id = Some("r".to_owned());
        let increment =
            IncrementQuotaUsageRequest { quota_id: quota_id.clone(), amount: 3, request_id };
        client.clone().increment_quota_usage(by(&self.token, increment)).await.unwrap();
        let refund = |request_id: &str| RefundQuotaUsageRequest {
            quota_id: quota_id.clone(),
            request_id: request_id.to_owned(),
        };
        let done = client.clone().refund_quota_usage(by(&self.token, refund("r"))).await;
        let done = done.unwrap().into_inner();
        assert_eq!((done.refunded, done.replayed, done.usage.unwrap().used), (3, false, 0));
        let refused = client.clone().refund_quota_usage(by(&self.token, refund("s"))).await;
        assert_eq!(error_parts(&refused.unwrap_err()).1, "SYS_QUOTA_REQUEST_NOT_FOUND");
    }
}
