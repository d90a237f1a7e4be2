//! `/api/v1/quotas`: reading and writing quota policies.

pub(super) mod check;
pub(super) mod history;
pub(super) mod increment;
pub(super) mod refund;
pub(super) mod reservations;
pub(super) mod reset;
pub(super) mod usage;
mod wire;

use std::sync::Arc;

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use headgate_api::quotas::{QuotaRefusal, QuotaServices};
use headgate_auth::Action;
use headgate_quota::{PolicyFilter, QuotaId, QuotaPolicy, ReservationId, UnknownSubjectType};
use serde::Serialize;
use utoipa::ToSchema;

use self::wire::{WirePolicy, WirePolicyDraft};
use super::{
    caller::Caller,
    entity_tag,
    error::ApiError,
    json,
    json_body::JsonBody,
    page::WirePagination,
    path::PathParam,
    query::{PAGE, Query},
    schemas::{
        self, Failing, Invalid, NoSuchQuota, Protected, QuotaChanged, QuotaExists, WithBody,
    },
};

/// Prefix of all paths of this API.
pub(super) const PATH: &str = "/api/v1/quotas";

/// One page of policies.
#[derive(Serialize, ToSchema)]
#[schema(as = Quotas)]
pub(super) struct WirePolicies {
    quotas: Vec<WirePolicy>,
    pagination: WirePagination,
}

/// Lists quota policies, the newest first.
#[utoipa::path(
    get,
    path = PATH,
    tag = "quotas",
    operation_id = "list_quotas",
    params(
        ("subject_type" = Option<schemas::SubjectType>, Query, description = "Only policies of this kind of subject"),
        ("subject_id" = Option<String>, Query, description = "Only policies of the subject with this id"),
        ("enabled_only" = Option<bool>, Query, description = "Only enabled policies"),
        ("page" = Option<u32>, Query, minimum = 1, description = "Page number; default 1"),
        ("page_size" = Option<u32>, Query, minimum = 1, maximum = 100, description = "Items per page; default 20"),
    ),
    security(("token" = [])),
    responses((status = 200, description = "One page", body = WirePolicies), Invalid, Protected, Failing),
)]
pub(super) async fn list(
    State(quotas): State<Arc<QuotaServices>>,
    caller: Caller,
    query: Query,
) -> Result<Response, ApiError> {
    caller.may(Action::ReadQuotas).await?;
    let mut reader = query.reader(&[&["subject_type", "subject_id", "enabled_only"], &PAGE]);
    let filter = PolicyFilter {
        subject_type: reader
            .parsed("subject_type", || format!("subject_type {UnknownSubjectType}")),
        subject_id: reader.text("subject_id").map(str::to_owned),
        enabled_only: reader
            .parsed("enabled_only", || "enabled_only must be true or false".to_owned())
            .unwrap_or(false),
    };
    let page = reader.page();
    reader.finish()?;

    let listed = quotas.policies.list(&filter, page).await.map_err(QuotaRefusal::from)?;
    let pagination = WirePagination::from(&listed);
    let quotas = listed.items.iter().map(WirePolicy::from).collect();
    Ok(json::respond(&WirePolicies { quotas, pagination }))
}

/// Creates a quota policy.
#[utoipa::path(
    post,
    path = PATH,
    tag = "quotas",
    operation_id = "create_quota",
    request_body = WirePolicyDraft<'_>,
    security(("token" = [])),
    responses((status = 201, description = "The policy", body = WirePolicy), QuotaExists, WithBody, Protected, Failing),
)]
pub(super) async fn create(
    State(quotas): State<Arc<QuotaServices>>,
    caller: Caller,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let author = caller.may(Action::WriteQuotas).await?;
    let draft: WirePolicyDraft<'_> = body.parse()?;
    let made = quotas.policies.create(draft.into(), &author).await;
    let mut response = tagged(&made.map_err(QuotaRefusal::from)?);
    *response.status_mut() = StatusCode::CREATED;
    Ok(response)
}

/// Shows a quota policy.
#[utoipa::path(
    get,
    path = "/api/v1/quotas/{id}",
    tag = "quotas",
    operation_id = "get_quota",
    params(("id" = String, Path, description = "The policy's id")),
    security(("token" = [])),
    responses((status = 200, description = "The policy", body = WirePolicy), NoSuchQuota, Protected, Failing),
)]
pub(super) async fn get(
    State(quotas): State<Arc<QuotaServices>>,
    caller: Caller,
    PathParam(id): PathParam,
) -> Result<Response, ApiError> {
    caller.may(Action::ReadQuotas).await?;
    let policy = quotas.policies.get(&quota_id(&id)?).await.map_err(QuotaRefusal::from)?;
    Ok(tagged(&policy))
}

/// Updates a quota policy. Usage is kept, and counts against a changed limit at once.
#[utoipa::path(
    put,
    path = "/api/v1/quotas/{id}",
    tag = "quotas",
    operation_id = "update_quota",
    params(
        ("id" = String, Path, description = "The policy's id"),
        ("If-Match" = Option<String>, Header, description = "The `ETag` of the policy as it was read (its `updated_at` in quotes): the policy is changed only if it still has this tag"),
    ),
    request_body = WirePolicyDraft<'_>,
    security(("token" = [])),
    responses((status = 200, description = "The policy", body = WirePolicy), NoSuchQuota, QuotaExists, QuotaChanged, WithBody, Protected, Failing),
)]
pub(super) async fn update(
    State(quotas): State<Arc<QuotaServices>>,
    caller: Caller,
    PathParam(id): PathParam,
    headers: HeaderMap,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let author = caller.may(Action::WriteQuotas).await?;
    let id = quota_id(&id)?;
    let draft: WirePolicyDraft<'_> = body.parse()?;
    let (draft, policies) = (draft.into(), &quotas.policies);
    let policy = match entity_tag::expected(&headers, "policy")? {
        None => policies.replace(&id, &draft, &author).await,
        Some(seen) => policies.replace_if_unchanged(&id, &draft, seen, &author).await,
    };
    Ok(tagged(&policy.map_err(QuotaRefusal::from)?))
}

/// Deletes a quota policy. Its usage stays in the ledger, but is no longer shown.
#[utoipa::path(
    delete,
    path = "/api/v1/quotas/{id}",
    tag = "quotas",
    operation_id = "delete_quota",
    params(
        ("id" = String, Path, description = "The policy's id"),
        ("If-Match" = Option<String>, Header, description = "The `ETag` of the policy as it was read (its `updated_at` in quotes): the policy is deleted only if it still has this tag"),
    ),
    security(("token" = [])),
    responses((status = 204, description = "Deleted"), NoSuchQuota, QuotaChanged, Protected, Failing),
)]
pub(super) async fn delete(
    State(quotas): State<Arc<QuotaServices>>,
    caller: Caller,
    PathParam(id): PathParam,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let author = caller.may(Action::DeleteQuotas).await?;
    let (id, policies) = (quota_id(&id)?, &quotas.policies);
    let deleted = match entity_tag::expected(&headers, "policy")? {
        None => policies.delete(&id, &author).await,
        Some(seen) => policies.delete_if_unchanged(&id, seen, &author).await,
    };
    deleted.map_err(QuotaRefusal::from)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// A policy, with the tag of its state.
fn tagged(policy: &QuotaPolicy) -> Response {
    let mut response = json::respond(&WirePolicy::from(policy));
    entity_tag::add(&mut response, policy.updated_at);
    response
}

/// Parses the id in a path; an invalid id is an unknown policy.
fn quota_id(text: &str) -> Result<QuotaId, ApiError> {
    let unknown = |_| QuotaRefusal::NotFound(text.chars().take(QuotaId::MAX_BYTES).collect());
    Ok(text.parse().map_err(unknown)?)
}

/// Parses the id of a reservation in a path; an invalid id is an unknown reservation.
fn reservation_id(text: &str) -> Result<ReservationId, ApiError> {
    let shown = || text.chars().take(ReservationId::MAX_BYTES).collect();
    Ok(text.parse().map_err(|_| QuotaRefusal::NoReservation(shown()))?)
}
