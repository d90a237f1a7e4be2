//! `GET /api/v1/ratelimit/audit`: who changed what.

use std::{borrow::Cow, sync::Arc};

use axum::{extract::State, response::Response};
use headgate::Timestamp;
use headgate_api::rate_limits::RuleAdmin;
use headgate_auth::Action;
use headgate_ratelimit::{AuditEntry, AuditFilter};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{
    caller::Caller,
    error::ApiError,
    json,
    page::WirePagination,
    query::{PAGE, Query, Reader},
    schemas::{AuditAction, Failing, Invalid, Protected},
    time,
};

/// One page of the audit log.
#[derive(Serialize, ToSchema)]
#[schema(as = Audit)]
pub(super) struct WireAudit<'a> {
    entries: Vec<WireEntry<'a>>,
    pagination: WirePagination,
}

/// A change, as it was made.
#[derive(Serialize, ToSchema)]
#[schema(as = AuditEntry)]
pub(super) struct WireEntry<'a> {
    id: i64,
    #[serde(serialize_with = "time::serialize")]
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    actor: &'a str,
    #[schema(value_type = AuditAction)]
    action: &'a str,
    target: &'a str,
    /// Name of the changed object at the time; for a rule without a name, its scope and pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    target_name: Option<String>,
    /// State before.
    #[schema(value_type = Option<Object>, required = true)]
    before: Option<&'a RawValue>,
    /// State after. For a reset that failed: `{"outcome":"not_done"}`; for one whose outcome was not recorded: `{"outcome":"unknown"}`.
    #[schema(value_type = Option<Object>, required = true)]
    after: Option<&'a RawValue>,
    request_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    reason: Option<&'a str>,
}

/// The name in the recorded state.
#[derive(Deserialize)]
struct Said<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    scope: Option<Cow<'a, str>>,
    #[serde(borrow)]
    identifier_pattern: Option<Cow<'a, str>>,
}

/// Lists changes, the newest first.
#[utoipa::path(
    get,
    path = "/api/v1/ratelimit/audit",
    tag = "audit",
    operation_id = "list_changes",
    params(
        ("actor" = Option<String>, Query, description = "Only changes by this actor"),
        ("action" = Option<String>, Query, description = "Only `rule.create`, `rule.update`, `rule.delete`, `override.set`, `override.delete`, `counter.reset`, `lease.end`, `quota.create`, `quota.update`, `quota.delete`, `quota.reset` or `config.reload`"),
        ("target" = Option<String>, Query, description = "Only changes of this rule's or quota's id or `scope:identifier`"),
        ("since" = Option<String>, Query, format = DateTime, description = "Only changes not before this time (RFC 3339)"),
        ("until" = Option<String>, Query, format = DateTime, description = "Only changes before this time (RFC 3339)"),
        ("page" = Option<u32>, Query, minimum = 1, description = "Page number; default 1"),
        ("page_size" = Option<u32>, Query, minimum = 1, maximum = 100, description = "Items per page; default 20"),
    ),
    security(("token" = [])),
    responses((status = 200, description = "One page", body = WireAudit<'_>), Invalid, Protected, Failing),
)]
pub(super) async fn audit(
    State(admin): State<Arc<RuleAdmin>>,
    caller: Caller,
    query: Query,
) -> Result<Response, ApiError> {
    caller.may(Action::ReadAudit).await?;
    let mut reader = query.reader(&[&["actor", "action", "target", "since", "until"], &PAGE]);
    let owned = |text: Option<&str>| text.map(str::to_owned);
    let filter = AuditFilter {
        actor: owned(reader.text("actor")),
        action: owned(reader.text("action")),
        target: owned(reader.text("target")),
        since: moment(&mut reader, "since"),
        until: moment(&mut reader, "until"),
    };
    let page = reader.page();
    reader.finish()?;

    let listed = admin.audit.entries(&filter, page).await?;
    let pagination = WirePagination::from(&listed);
    let entries = listed.items.iter().map(WireEntry::from).collect();
    Ok(json::respond(&WireAudit { entries, pagination }))
}

fn moment(reader: &mut Reader<'_>, name: &'static str) -> Option<Timestamp> {
    let moment = time::parse(reader.text(name)?);
    if moment.is_none() {
        reader.refuse(name, format!("{name} must be a time such as 2026-02-20T10:00:00Z"));
    }
    moment
}

impl Said<'_> {
    /// The newest name that the entry knows.
    fn name(entry: &AuditEntry) -> Option<String> {
        let states = [entry.after.as_deref(), entry.before.as_deref()];
        states.into_iter().flatten().find_map(|state| {
            let said: Said<'_> = serde_json::from_str(state).ok()?;
            let about = || Some(format!("{}:{}", said.scope?, said.identifier_pattern?));
            said.name.map(Cow::into_owned).or_else(about)
        })
    }
}

impl<'a> From<&'a AuditEntry> for WireEntry<'a> {
    fn from(entry: &'a AuditEntry) -> Self {
        // The record holds objects that were written as JSON.
        let raw = |json: &'a Option<String>| serde_json::from_str(json.as_deref()?).ok();
        Self {
            id: entry.id,
            at: entry.author.at,
            actor: &entry.author.actor,
            action: &entry.action,
            target: &entry.target,
            target_name: Said::name(entry),
            before: raw(&entry.before),
            after: raw(&entry.after),
            request_id: &entry.author.request_id,
            reason: entry.reason.as_deref(),
        }
    }
}
