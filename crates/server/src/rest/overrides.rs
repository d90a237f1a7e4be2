//! `/api/v1/ratelimit/overrides`: other limits for single subjects of a rule.

mod wire;

use std::sync::Arc;

use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use headgate_api::rate_limits::RuleAdmin;
use headgate_auth::Action;
use headgate_ratelimit::{OverrideFilter, OverrideId};
use serde::Serialize;
use utoipa::ToSchema;

use self::wire::WireOverrideDraft;
use super::{
    caller::Caller,
    error::ApiError,
    json,
    json_body::JsonBody,
    page::WirePagination,
    path::PathParam,
    query::{PAGE, Query},
    schemas::{
        Failing, Invalid, NoSuchOverride, NoSuchRule, Protected, TooManyOverrides, WithBody,
    },
};

pub(super) use self::wire::WireOverride;

pub(super) const PATH: &str = "/api/v1/ratelimit/overrides";
pub(super) const ONE: &str = "/api/v1/ratelimit/overrides/{id}";

const MAX_SEARCH_CHARS: usize = 255;

/// One page of overrides.
#[derive(Serialize, ToSchema)]
#[schema(as = Overrides)]
pub(super) struct WireOverrides {
    overrides: Vec<WireOverride>,
    pagination: WirePagination,
}

/// Lists overrides, the newest first.
#[utoipa::path(
    get,
    path = PATH,
    tag = "rules",
    operation_id = "list_overrides",
    params(
        ("rule_id" = Option<String>, Query, format = "uuid", description = "Only overrides of this rule"),
        ("search" = Option<String>, Query, max_length = 255, description = "Only overrides whose subject contains this text; case-insensitive"),
        ("active_only" = Option<bool>, Query, description = "Only overrides that have not ended"),
        ("page" = Option<u32>, Query, minimum = 1, description = "Page number; default 1"),
        ("page_size" = Option<u32>, Query, minimum = 1, maximum = 100, description = "Items per page; default 20"),
    ),
    security(("token" = [])),
    responses((status = 200, description = "One page", body = WireOverrides), Invalid, Protected, Failing),
)]
pub(super) async fn list(
    State(admin): State<Arc<RuleAdmin>>,
    caller: Caller,
    query: Query,
) -> Result<Response, ApiError> {
    let author = caller.may(Action::ReadRules).await?;
    let mut reader = query.reader(&[&["rule_id", "search", "active_only"], &PAGE]);
    let active_only = reader
        .parsed("active_only", || "active_only must be true or false".to_owned())
        .unwrap_or(false);
    let filter = OverrideFilter {
        rule: reader.parsed("rule_id", || "rule_id must be a UUID".to_owned()),
        search: reader.text("search").map(str::to_owned),
        active_at: active_only.then_some(author.at),
    };
    if filter.search.as_ref().is_some_and(|text| text.chars().count() > MAX_SEARCH_CHARS) {
        reader.refuse("search", format!("search must be at most {MAX_SEARCH_CHARS} characters"));
    }
    let page = reader.page();
    reader.finish()?;

    let listed = admin.overrides.list(&filter, page).await?;
    let pagination = WirePagination::from(&listed);
    let shown = |one| WireOverride::new(one, &admin.catalog);
    Ok(json::respond(&WireOverrides {
        overrides: listed.items.iter().map(shown).collect(),
        pagination,
    }))
}

/// Sets an override: creates it, or replaces the one of the same rule and subject.
#[utoipa::path(
    put,
    path = PATH,
    tag = "rules",
    operation_id = "set_override",
    request_body = WireOverrideDraft<'_>,
    security(("token" = [])),
    responses(
        (status = 200, description = "The override, replaced", body = WireOverride),
        (status = 201, description = "The override, created", body = WireOverride),
        NoSuchRule, TooManyOverrides, WithBody, Protected, Failing,
    ),
)]
pub(super) async fn set(
    State(admin): State<Arc<RuleAdmin>>,
    caller: Caller,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let author = caller.may(Action::WriteRules).await?;
    let draft: WireOverrideDraft<'_> = body.parse()?;
    let (set, is_new) = admin.overrides.set(draft.into(), &author).await?;
    let warnings = admin.overrides.warnings(&set);
    let shown = WireOverride::new(&set, &admin.catalog).with_warnings(warnings);
    let mut response = json::respond(&shown);
    if is_new {
        *response.status_mut() = StatusCode::CREATED;
    }
    Ok(response)
}

/// Shows an override.
#[utoipa::path(
    get,
    path = ONE,
    tag = "rules",
    operation_id = "get_override",
    params(("id" = String, Path, format = "uuid", description = "The override's id")),
    security(("token" = [])),
    responses((status = 200, description = "The override", body = WireOverride), NoSuchOverride, Protected, Failing),
)]
pub(super) async fn get(
    State(admin): State<Arc<RuleAdmin>>,
    caller: Caller,
    PathParam(id): PathParam,
) -> Result<Response, ApiError> {
    caller.may(Action::ReadRules).await?;
    let found = admin.overrides.get(override_id(&id)?).await?;
    Ok(json::respond(&WireOverride::new(&found, &admin.catalog)))
}

/// Deletes an override: the subject has the limit of the rule again.
#[utoipa::path(
    delete,
    path = ONE,
    tag = "rules",
    operation_id = "delete_override",
    params(("id" = String, Path, format = "uuid", description = "The override's id")),
    security(("token" = [])),
    responses((status = 204, description = "Deleted"), NoSuchOverride, Protected, Failing),
)]
pub(super) async fn delete(
    State(admin): State<Arc<RuleAdmin>>,
    caller: Caller,
    PathParam(id): PathParam,
) -> Result<Response, ApiError> {
    let author = caller.may(Action::WriteRules).await?;
    admin.overrides.delete(override_id(&id)?, &author).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Parses the id in a path; an invalid id is an unknown override.
fn override_id(text: &str) -> Result<OverrideId, ApiError> {
    const MAX_CHARS: usize = 64;
    text.parse().map_err(|_| ApiError::NoSuchOverride(text.chars().take(MAX_CHARS).collect()))
}
