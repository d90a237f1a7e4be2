//! `/api/v1/ratelimit/rules`: reading and writing rules.

pub(super) mod apply;
mod items;
mod lease;
mod limit;
mod seen;
mod selector;
mod wire;

use std::sync::Arc;

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use headgate_api::rate_limits::RuleAdmin;
use headgate_auth::Action;
use headgate_ratelimit::{RuleFilter, RuleId, RuleScope, UnknownRuleScope};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    caller::Caller,
    error::ApiError,
    json,
    json_body::JsonBody,
    page::WirePagination,
    path::PathParam,
    query::{PAGE, Query},
    schemas::{self, Changed, Conflict, Failing, Invalid, NoSuchRule, Protected, WithBody},
};

pub(super) use self::{
    apply::apply,
    selector::{JsonField, WireWarning},
    wire::{WireDraft, WireLease, WireRule},
};

/// One page of rules.
#[derive(Serialize, ToSchema)]
#[schema(as = Rules)]
pub(super) struct WireRules {
    rules: Vec<WireRule>,
    pagination: WirePagination,
    /// Revision of the rules: pages with the same revision belong together.
    revision: i64,
}

const MAX_SEARCH_CHARS: usize = 255;

/// Lists rules, the newest first.
#[utoipa::path(
    get,
    path = "/api/v1/ratelimit/rules",
    tag = "rules",
    operation_id = "list_rules",
    params(
        ("scope" = Option<schemas::RuleScope>, Query, description = "Only rules of this scope"),
        ("enabled_only" = Option<bool>, Query, description = "Only enabled rules"),
        ("search" = Option<String>, Query, max_length = 255, description = "Only rules whose name or pattern contains this text; case-insensitive"),
        ("page" = Option<u32>, Query, minimum = 1, description = "Page number; default 1"),
        ("page_size" = Option<u32>, Query, minimum = 1, maximum = 100, description = "Items per page; default 20"),
    ),
    security(("token" = [])),
    responses((status = 200, description = "One page", body = WireRules), Invalid, Protected, Failing),
)]
pub(super) async fn list(
    State(admin): State<Arc<RuleAdmin>>,
    caller: Caller,
    query: Query,
) -> Result<Response, ApiError> {
    caller.may(Action::ReadRules).await?;
    let mut reader = query.reader(&[&["scope", "enabled_only", "search"], &PAGE]);
    let filter = RuleFilter {
        scope: reader
            .parsed("scope", || UnknownRuleScope.to_string())
            .map(|RuleScope(scope)| scope),
        enabled_only: reader
            .parsed("enabled_only", || "enabled_only must be true or false".to_owned())
            .unwrap_or(false),
        search: reader.text("search").map(str::to_owned),
    };
    if filter.search.as_ref().is_some_and(|text| text.chars().count() > MAX_SEARCH_CHARS) {
        reader.refuse("search", format!("search must be at most {MAX_SEARCH_CHARS} characters"));
    }
    let page = reader.page();
    reader.finish()?;

    let (revision, listed) = admin.rules.list(&filter, page).await?;
    let pagination = WirePagination::from(&listed);
    let rules = listed.items.iter().map(WireRule::from).collect();
    Ok(json::respond(&WireRules { rules, pagination, revision: revision.0 }))
}

/// Creates a rule.
#[utoipa::path(
    post,
    path = "/api/v1/ratelimit/rules",
    tag = "rules",
    operation_id = "create_rule",
    request_body = WireDraft<'_>,
    security(("token" = [])),
    responses((status = 201, description = "The rule", body = WireRule), Conflict, WithBody, Protected, Failing),
)]
pub(super) async fn create(
    State(admin): State<Arc<RuleAdmin>>,
    caller: Caller,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let author = caller.may(Action::WriteRules).await?;
    let draft: WireDraft<'_> = body.parse()?;
    let rule = admin.rules.create(draft.into(), &author).await?;
    let warnings = admin.rules.warnings(&rule);
    let mut response = json::respond(&WireRule::from(&rule).with_warnings(warnings));
    *response.status_mut() = StatusCode::CREATED;
    Ok(response)
}

/// Shows a rule.
#[utoipa::path(
    get,
    path = "/api/v1/ratelimit/rules/{id}",
    tag = "rules",
    operation_id = "get_rule",
    params(("id" = String, Path, format = "uuid", description = "The rule's id")),
    security(("token" = [])),
    responses((status = 200, description = "The rule", body = WireRule), NoSuchRule, Protected, Failing),
)]
pub(super) async fn get(
    State(admin): State<Arc<RuleAdmin>>,
    caller: Caller,
    PathParam(id): PathParam,
) -> Result<Response, ApiError> {
    caller.may(Action::ReadRules).await?;
    let rule = admin.rules.get(rule_id(&id)?).await?;
    Ok(seen::tagged(&rule, Vec::new()))
}

/// Updates a rule.
#[utoipa::path(
    put,
    path = "/api/v1/ratelimit/rules/{id}",
    tag = "rules",
    operation_id = "update_rule",
    params(
        ("id" = String, Path, format = "uuid", description = "The rule's id"),
        ("If-Match" = Option<String>, Header, description = "The `ETag` of the rule as it was read (its `updated_at` in quotes): the rule is changed only if it still has this tag"),
    ),
    request_body = WireDraft<'_>,
    security(("token" = [])),
    responses((status = 200, description = "The rule", body = WireRule), NoSuchRule, Conflict, Changed, WithBody, Protected, Failing),
)]
pub(super) async fn update(
    State(admin): State<Arc<RuleAdmin>>,
    caller: Caller,
    PathParam(id): PathParam,
    headers: HeaderMap,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let author = caller.may(Action::WriteRules).await?;
    let id = rule_id(&id)?;
    let draft: WireDraft<'_> = body.parse()?;
    let rule = match seen::of(&headers)? {
        None => admin.rules.update(id, draft.into(), &author).await?,
        Some(seen) => admin.rules.update_if_unchanged(id, draft.into(), seen, &author).await?,
    };
    let warnings = admin.rules.warnings(&rule);
    Ok(seen::tagged(&rule, warnings))
}

/// Deletes a rule.
#[utoipa::path(
    delete,
    path = "/api/v1/ratelimit/rules/{id}",
    tag = "rules",
    operation_id = "delete_rule",
    params(
        ("id" = String, Path, format = "uuid", description = "The rule's id"),
        ("If-Match" = Option<String>, Header, description = "The `ETag` of the rule as it was read: the rule is deleted only if it still has this tag"),
    ),
    security(("token" = [])),
    responses((status = 204, description = "Deleted"), NoSuchRule, Changed, Invalid, Protected, Failing),
)]
pub(super) async fn delete(
    State(admin): State<Arc<RuleAdmin>>,
    caller: Caller,
    PathParam(id): PathParam,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let author = caller.may(Action::DeleteRules).await?;
    let id = rule_id(&id)?;
    match seen::of(&headers)? {
        None => admin.rules.delete(id, &author).await?,
        Some(seen) => admin.rules.delete_if_unchanged(id, seen, &author).await?,
    };
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Parses the id in a path; an invalid id is an unknown rule.
pub(super) fn rule_id(text: &str) -> Result<RuleId, ApiError> {
    const MAX_CHARS: usize = 64;
    text.parse().map_err(|_| ApiError::NoSuchRule(text.chars().take(MAX_CHARS).collect()))
}
