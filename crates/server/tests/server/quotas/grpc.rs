//! `k1s0.system.quota.v1.QuotaService`

pub(crate) mod client;

use std::time::Duration;

use headgate_testkit::require;
use tonic::Code;
use tonic_types::StatusExt as _;

use self::client::{
    CheckQuotaRequest, Client, DeleteQuotaPolicyRequest, GetQuotaHistoryRequest,
    GetQuotaPolicyRequest, GetQuotaUsageRequest, IncrementQuotaUsageRequest,
    ListQuotaPoliciesRequest, ResetQuotaUsageRequest, UpdateQuotaPolicyRequest, connect,
    error_parts, new_policy,
};
use super::backend::Backend;
use crate::{grpc::client::by, harness::Server};

#[tokio::test(flavor = "multi_thread")]
async fn on_the_embedded_default() {
    contract(&Server::start(&[]).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgres_and_redis() {
    let backend = require!(Backend::start());
    contract(&backend.server().await).await;
}

async fn contract(server: &Server) {
    let client = connect(server.grpc_address).await;
    let token = server.admin_token.clone().unwrap();
    let id = policies(&client, &token).await;
    usage(&client, &token, &id).await;
    exceeded(&client, &token, &id).await;
    resets_and_history(&client, &token, &id).await;
    let gone = DeleteQuotaPolicyRequest { id: id.clone() };
    let gone = client.clone().delete_quota_policy(by(&token, gone)).await.unwrap().into_inner();
    assert_eq!((gone.id, gone.deleted), (id.clone(), true));
    let refused = client
        .clone()
        .get_quota_usage(by(&token, GetQuotaUsageRequest { quota_id: id.clone() }))
        .await;
    let expected = (
        Code::NotFound,
        "SYS_QUOTA_NOT_FOUND".to_owned(),
        format!("quota policy not found: {id}"),
        Vec::new(),
    );
    assert_eq!(error_parts(&refused.unwrap_err()), expected);
}

async fn policies(client: &Client, token: &str) -> String {
    let made = client.clone().create_quota_policy(by(token, new_policy("t1", 10))).await;
    let policy = made.unwrap().into_inner().policy.unwrap();
    assert_eq!((policy.subject_type.as_str(), policy.limit), ("tenant", 10));
    assert_eq!((policy.enabled, policy.alert_threshold_percent), (true, Some(80)));
    assert!(policy.created_at.is_some() && policy.time_zone.is_empty());
    let again = client.clone().create_quota_policy(by(token, new_policy("t1", 10))).await;
    assert_eq!(error_parts(&again.unwrap_err()).0, Code::AlreadyExists);
    let wrong = client.clone().create_quota_policy(by(token, new_policy("", 0))).await;
    let (code, reason, message, fields) = error_parts(&wrong.unwrap_err());
    assert_eq!((code, reason.as_str()), (Code::InvalidArgument, "SYS_QUOTA_VALIDATION_ERROR"));
    assert_eq!(message, "validation failed");
    let fields: Vec<&str> = fields.iter().map(|(field, _)| field.as_str()).collect();
    assert_eq!(fields, ["subject_id", "limit"]);
    let large = client.clone().create_quota_policy(by(token, new_policy("t9", u64::MAX))).await;
    assert_eq!(error_parts(&large.unwrap_err()).3[0].0, "limit");

    let get = GetQuotaPolicyRequest { id: policy.id.clone() };
    let got = client.clone().get_quota_policy(by(token, get)).await.unwrap().into_inner();
    assert_eq!(got.policy.as_ref(), Some(&policy));
    let update =
        UpdateQuotaPolicyRequest { id: policy.id.clone(), limit: Some(20), ..Default::default() };
    let changed = client.clone().update_quota_policy(by(token, update)).await.unwrap().into_inner();
    let changed = changed.policy.unwrap();
    assert_eq!((changed.limit, changed.enabled), (20, true), "only what was sent");
    assert_eq!((changed.name, changed.alert_threshold_percent), (policy.name, Some(80)));

    client.clone().create_quota_policy(by(token, new_policy("t2", 10))).await.unwrap();
    let all = ListQuotaPoliciesRequest { page_size: 1, ..Default::default() };
    let all = client.clone().list_quota_policies(by(token, all)).await.unwrap().into_inner();
    assert_eq!((all.policies.len(), all.total, all.has_next), (1, 2, true));
    let one = ListQuotaPoliciesRequest {
        subject_type: "tenant".into(),
        subject_id: "t1".into(),
        enabled_only: true,
        ..Default::default()
    };
    let one = client.clone().list_quota_policies(by(token, one)).await.unwrap().into_inner();
    assert_eq!((one.policies[0].id.as_str(), one.total), (policy.id.as_str(), 1));
    let bad = ListQuotaPoliciesRequest {
        page_size: 101,
        subject_type: "planet".into(),
        ..Default::default()
    };
    let bad = client.clone().list_quota_policies(by(token, bad)).await.unwrap_err();
    assert_eq!(error_parts(&bad).3.len(), 2);
    policy.id
}

fn increment(id: &str, amount: u64, request_id: Option<&str>) -> IncrementQuotaUsageRequest {
    let request_id = request_id.map(str::to_owned);
    IncrementQuotaUsageRequest { quota_id: id.to_owned(), amount, request_id }
}

async fn usage(client: &Client, token: &str, id: &str) {
    let done = client.clone().increment_quota_usage(by(token, increment(id, 15, Some("a")))).await;
    let done = done.unwrap().into_inner();
    assert_eq!(
        (done.used, done.remaining, done.usage_percent.to_string()),
        (15, 5, "75".to_owned())
    );
    assert!(done.allowed && !done.exceeded && !done.replayed);
    let replay =
        client.clone().increment_quota_usage(by(token, increment(id, 15, Some("a")))).await;
    assert!(replay.unwrap().into_inner().replayed);
    let conflict =
        client.clone().increment_quota_usage(by(token, increment(id, 1, Some("a")))).await;
    let (code, reason, ..) = error_parts(&conflict.unwrap_err());
    assert_eq!((code, reason.as_str()), (Code::AlreadyExists, "SYS_QUOTA_REQUEST_ID_CONFLICT"));

    let asked = GetQuotaUsageRequest { quota_id: id.to_owned() };
    let usage = client.clone().get_quota_usage(by(token, asked)).await.unwrap().into_inner();
    let usage = usage.usage.unwrap();
    assert_eq!((usage.used, usage.limit, usage.period.as_str()), (15, 20, "monthly"));
    let (end, reset) = (usage.period_end.unwrap(), usage.reset_at.unwrap());
    assert_eq!((end.seconds + 1, end.nanos, reset.nanos), (reset.seconds, 999_000_000, 0));
    for (amount, allowed) in [(0, true), (5, true), (6, false)] {
        let question = CheckQuotaRequest { quota_id: id.to_owned(), amount };
        let checked = client.clone().check_quota(by(token, question)).await.unwrap().into_inner();
        assert_eq!((checked.allowed, checked.usage.unwrap().used), (allowed, 15), "{amount}");
    }
    let nothing = client.clone().increment_quota_usage(by(token, increment(id, 0, None))).await;
    assert_eq!(error_parts(&nothing.unwrap_err()).3[0].0, "amount");
}

async fn exceeded(client: &Client, token: &str, id: &str) {
    let refused = client.clone().increment_quota_usage(by(token, increment(id, 6, None))).await;
    let status = refused.unwrap_err();
    let expected = (
        Code::ResourceExhausted,
        "SYS_QUOTA_EXCEEDED".to_owned(),
        "quota exceeded for t1: 15/20 (monthly)".to_owned(),
        Vec::new(),
    );
    assert_eq!(error_parts(&status), expected);
    let details = status.get_error_details();
    let wait = details.retry_info().unwrap().retry_delay.unwrap();
    assert!(wait > Duration::ZERO && wait <= Duration::from_secs(31 * 86_400), "{wait:?}");
    assert_eq!(details.quota_failure().unwrap().violations[0].subject, id);
}

async fn resets_and_history(client: &Client, token: &str, id: &str) {
    let reset =
        |reason: &str| ResetQuotaUsageRequest { quota_id: id.to_owned(), reason: reason.into() };
    let blank = client.clone().reset_quota_usage(by(token, reset(" "))).await.unwrap_err();
    assert_eq!(error_parts(&blank).3, [("reason".to_owned(), "reason is required".to_owned())]);
    let done = client.clone().reset_quota_usage(by(token, reset("why not"))).await;
    let done = done.unwrap().into_inner();
    assert_eq!((done.used, done.reset_by.as_str()), (0, "admin"));
    assert!(done.reset_at.is_some());
    client.clone().increment_quota_usage(by(token, increment(id, 2, None))).await.unwrap();
    let history = GetQuotaHistoryRequest { quota_id: id.to_owned(), ..Default::default() };
    let history = client.clone().get_quota_history(by(token, history)).await.unwrap().into_inner();
    assert_eq!((history.total, history.has_next, history.history[0].used), (1, false, 2));
}
