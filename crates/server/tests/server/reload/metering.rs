//! Streams of uses whose token is removed.

use futures_util::stream;
use serde_json::json;
use tokio::sync::mpsc;
use tonic::Code;

use super::Reloadable;
use crate::{
    grpc::client::by,
    quotas::{
        QUOTAS,
        grpc::client::{UseQuotaReservationRequest, connect, error_parts},
    },
};

const ROOT: &str = "root-token-0123456789";
const CI: &str = "ci-token-0123456789";

fn tokens(more: &str) -> String {
    format!("auth: {{tokens: [{{name: root, role: sys_admin, token: {ROOT}}}{more}]}}\n")
}

/// Posts to a quota as the administrator; returns the field `id`.
async fn post(server: &Reloadable, path: &str, body: serde_json::Value) -> String {
    let reply = server.server.with_token(Some(ROOT), "POST", path, &body.to_string()).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    reply.json()["id"].as_str().expect("an id").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_token_charges_no_more_on_an_open_stream() {
    let ci = format!(", {{name: ci, role: sys_operator, token: {CI}}}");
    let server = Reloadable::start(&tokens(&ci)).await;
    let policy = json!({
        "name": "quota", "subject_type": "tenant", "subject_id": "t", "limit": 100,
        "period": "monthly",
    });
    let quota_id = post(&server, QUOTAS, policy).await;
    let reservations = format!("{QUOTAS}/{quota_id}/reservations");
    let reservation_id = post(&server, &reservations, json!({"amount": 10})).await;

    let (sender, receiver) = mpsc::channel(1);
    let messages = stream::unfold(receiver, async |mut receiver| {
        receiver.recv().await.map(|message: UseQuotaReservationRequest| (message, receiver))
    });
    let mut client = connect(server.server.grpc_address).await;
    let metered = client.meter_quota_reservation(by(CI, messages)).await;
    let mut answers = metered.unwrap().into_inner();
    let charge = || UseQuotaReservationRequest {
        quota_id: quota_id.clone(),
        reservation_id: reservation_id.clone(),
        amount: 1,
        request_id: None,
    };
    sender.send(charge()).await.unwrap();
    assert_eq!(answers.message().await.unwrap().unwrap().charged, 1);

    let reloaded = server.reload_with(ROOT, &tokens("")).await;
    assert_eq!(reloaded.status, 200, "{}", reloaded.text);
    sender.send(charge()).await.unwrap();
    let refused = answers.message().await.unwrap_err();
    assert_eq!(error_parts(&refused).0, Code::Unauthenticated);
    let usage = format!("{QUOTAS}/{quota_id}/usage");
    let usage = server.server.with_token(Some(ROOT), "GET", &usage, "").await.json();
    assert_eq!(usage["used"], 1, "{usage}");
}
