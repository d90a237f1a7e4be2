//! `PUT /api/v1/ratelimit/rules`: applies a list of rules, all or nothing.

use std::sync::Arc;

use axum::{
    body::HttpBody,
    extract::{Request, State},
    response::Response,
};
use headgate_api::rate_limits::RuleAdmin;
use headgate_auth::Action;
use headgate_ratelimit::{
    Revision,
    usecase::{Plan, RuleList},
};
use serde::{Deserialize, Serialize};
use tokio::{sync::SemaphorePermit, task::spawn_blocking};
use utoipa::ToSchema;

use super::{
    WireRule,
    items::WireItems,
    wire::{WireDraft, WireSpec},
};
use crate::rest::{
    caller::Caller,
    error::{ApiError, Detail},
    field::Field,
    json,
    json_body::{JsonBody, MAX_LIST_BYTES, WireObject},
    schemas::{Failing, ListConflict, Protected, WithBody},
};

/// Shorter lists do not wait for others.
const SHORT_LIST_BYTES: u64 = 256 * 1024;

/// A list of rules to apply.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(expecting = "a JSON object", deny_unknown_fields)]
#[schema(as = RuleList)]
pub(in crate::rest) struct WireList<'a> {
    /// The rules. One with the scope, pattern and window of an existing rule changes that rule.
    #[serde(borrow)]
    #[schema(value_type = Vec<WireDraft<'a>>, max_items = 1_000_000)]
    rules: WireItems<'a>,
    /// Deletes the rules that are not listed.
    #[serde(borrow, default)]
    #[schema(value_type = Option<bool>)]
    prune: Field<'a>,
    /// Plans the changes without making them.
    #[serde(borrow, default)]
    #[schema(value_type = Option<bool>)]
    dry_run: Field<'a>,
    /// The `revision` of a reviewed plan: fails if the rules have changed since.
    #[serde(borrow, default)]
    #[schema(value_type = Option<i64>)]
    revision: Field<'a>,
}

/// Options of applying a list.
struct Manner {
    prune: bool,
    dry_run: bool,
    seen: Option<Revision>,
}

/// Changes, made or planned.
#[derive(Serialize, ToSchema)]
#[schema(as = Plan)]
pub(in crate::rest) struct WirePlan {
    created: Vec<WireSpec>,
    updated: Vec<WireUpdate>,
    deleted: Vec<WireRule>,
    /// Number of unchanged rules.
    unchanged: usize,
    /// True if the changes were made.
    applied: bool,
    /// Revision of the plan. Send it back with the same list to make exactly these changes, or none.
    revision: i64,
}

/// A changed rule.
#[derive(Serialize, ToSchema)]
#[schema(as = RuleUpdate)]
pub(in crate::rest) struct WireUpdate {
    #[schema(format = "uuid")]
    id: String,
    before: WireSpec,
    after: WireSpec,
}

/// Applies a list of rules, all or nothing.
#[utoipa::path(
    put,
    path = "/api/v1/ratelimit/rules",
    tag = "rules",
    operation_id = "apply_rules",
    request_body = WireList<'_>,
    security(("token" = [])),
    responses((status = 200, description = "The changes", body = WirePlan), ListConflict, WithBody, Protected, Failing),
)]
pub(in crate::rest) async fn apply(
    State(admin): State<Arc<RuleAdmin>>,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    // Authorize before reading a long list.
    let author = caller.may(Action::WriteRules).await?;
    JsonBody::<MAX_LIST_BYTES>::announced(&request)?;
    let _turn = turn(&admin, request.body().size_hint().upper()).await?;
    let body = JsonBody::<MAX_LIST_BYTES>::read(request.into_body()).await?;
    let (body, manner) = beside(move || {
        let manner = body.parse::<WireList<'_>>().and_then(|list| list.manner());
        (body, manner)
    })
    .await?;
    let Manner { prune, dry_run, seen } = manner?;
    let max = admin.rules.max_rules();
    // The rules borrow from the body, so it is parsed again where they are read.
    let fill = move |list: &mut RuleList| body.parse::<WireList<'_>>()?.rules.add_to(list, max);
    let plan = admin.rules.plan(fill, prune).await?;
    let plan = match seen {
        Some(seen) => plan.for_revision(seen)?,
        None => plan,
    };
    if !plan.deleted.is_empty() {
        caller.may(Action::DeleteRules).await?;
    }
    if !dry_run {
        admin.rules.apply(&plan, &author).await?;
    }
    beside(move || json::respond(&WirePlan::new(&plan, !dry_run))).await
}

/// Waits until no other long list is in memory.
async fn turn(
    admin: &RuleAdmin,
    bytes: Option<u64>,
) -> Result<Option<SemaphorePermit<'_>>, ApiError> {
    if bytes.is_some_and(|bytes| bytes <= SHORT_LIST_BYTES) {
        return Ok(None);
    }
    let turn = admin.long_lists.acquire().await;
    turn.map(Some).map_err(|error| ApiError::Internal(error.to_string()))
}

/// Runs slow work on a blocking thread, where no check waits for it.
async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    spawn_blocking(work).await.map_err(|error| ApiError::Internal(error.to_string()))
}

impl<'a> WireObject<'a> for WireList<'a> {
    fn problems(self) -> Vec<Detail> {
        self.manner().map_err(ApiError::into_details).err().unwrap_or_default()
    }
}

impl WireList<'_> {
    fn manner(&self) -> Result<Manner, ApiError> {
        let wrong = |field| move |message| Detail::new(field, "wrong_type", message);
        let prune = self.prune.flag("prune").map_err(wrong("prune"));
        let dry_run = self.dry_run.flag("dry_run").map_err(wrong("dry_run"));
        match (prune, dry_run, self.seen()) {
            (Ok(prune), Ok(dry_run), Ok(seen)) => Ok(Manner { prune, dry_run, seen }),
            (prune, dry_run, seen) => {
                let wrong = [prune.err(), dry_run.err(), seen.err()];
                Err(ApiError::Invalid(wrong.into_iter().flatten().collect()))
            }
        }
    }

    /// The revision that the caller has read, if given.
    fn seen(&self) -> Result<Option<Revision>, Detail> {
        match &self.revision {
            Field::Missing | Field::Null => Ok(None),
            Field::Number(number) => Ok(Some(Revision(*number))),
            _ => {
                let message = "revision must be that of a plan, a whole number".to_owned();
                Err(Detail::new("revision", "wrong_type", message))
            }
        }
    }
}

impl WirePlan {
    fn new(plan: &Plan, applied: bool) -> Self {
        let update = |(rule, spec): &(headgate_ratelimit::RateLimitRule, _)| WireUpdate {
            id: rule.id.to_string(),
            before: WireSpec::from(&rule.spec),
            after: WireSpec::from(spec),
        };
        Self {
            created: plan.created.iter().map(WireSpec::from).collect(),
            updated: plan.updated.iter().map(update).collect(),
            deleted: plan.deleted.iter().map(WireRule::from).collect(),
            unchanged: plan.unchanged,
            applied,
            revision: plan.revision.0,
        }
    }
}
