//! `/api/v1/ratelimit/holders`: the holders of places.

pub(super) mod end;

use std::sync::Arc;

use axum::{extract::State, response::Response};
use headgate::{Cost, Holders, Timestamp, algorithm::concurrency::Holder};
use headgate_api::rate_limits::MeteredChecks;
use headgate_auth::Action;
use headgate_ratelimit::{
    PlaceLeaseId, RateLimitRule,
    usecase::{
        AnyQuestion, AttributesQuestion, Question,
        check::{RuleSelection, holders::RuleHolders},
    },
};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    caller::Caller,
    check::{scope, subject},
    error::ApiError,
    explain::attributes::WireExplain,
    json,
    json_body::JsonBody,
    query::{Query, Reader},
    schemas::{self, Failing, Invalid, Protected, WithBody},
    time,
};

/// The path.
pub(super) const PATH: &str = "/api/v1/ratelimit/holders";

/// Number of holders that are listed for each rule, unless `max` says otherwise.
const DEFAULT_MAX: usize = 100;

/// The holders of the places that an acquisition would take.
#[derive(Serialize, ToSchema)]
#[schema(as = Holders)]
pub(super) struct WireHolders {
    /// The concurrency rules that apply; empty if there are none.
    rules: Vec<WireRuleHolders>,
}

/// The holders of one rule's places.
#[derive(Serialize, ToSchema)]
#[schema(as = RuleHolders)]
pub(super) struct WireRuleHolders {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, format = "uuid", required = false)]
    rule_id: Option<String>,
    rule_name: String,
    /// What the rule counts: an identifier, or the values of `per`.
    subject: String,
    /// Number of places.
    limit: u64,
    /// Number of places taken.
    taken: u64,
    /// Number of holders, also of those that are not listed.
    total: u64,
    /// Time of the list, by the store's clock.
    #[serde(serialize_with = "time::serialize")]
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// The holders whose leases end first.
    holders: Vec<WireHolder>,
}

/// A holder.
#[derive(Serialize, ToSchema)]
#[schema(as = Holder)]
pub(super) struct WireHolder {
    /// The ten characters of its lease's id after `lease_`, or of its reservation's after `rres_`.
    #[schema(example = "wX0bAbCdEf")]
    holder: String,
    /// Number of places that it holds.
    places: u32,
    /// Time at which its lease ends unless it is renewed, by the store's clock.
    #[serde(serialize_with = "time::serialize")]
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
    /// Milliseconds until then, rounded up.
    expires_in_ms: u64,
}

/// Lists the holders of a subject's places under concurrency rules, those whose leases end first.
#[utoipa::path(
    get,
    path = PATH,
    tag = "leases",
    operation_id = "list_holders",
    params(
        ("scope" = schemas::Scope, Query, description = "Kind of subject"),
        ("identifier" = String, Query, min_length = 1, max_length = 512, pattern = r"^[^\x00-\x1F\x7F{}]+$", description = "Identifier of the subject"),
        ("max" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "Maximum number of holders per rule; default 100"),
    ),
    security(("token" = [])),
    responses((status = 200, description = "The holders", body = WireHolders), Invalid, Protected, Failing),
)]
pub(super) async fn list(
    State(checks): State<Arc<MeteredChecks>>,
    caller: Caller,
    query: Query,
) -> Result<Response, ApiError> {
    caller.may(Action::ReadUsage).await?;
    let mut reader = query.reader(&[&["scope", "identifier", "max"]]);
    let max = max(&mut reader);
    let (scope, subject) = (scope(reader.text("scope")), subject(reader.text("identifier")));
    let mut wrong = reader.finish().map_err(ApiError::into_details).err().unwrap_or_default();
    match (scope, subject) {
        (Ok(scope), Ok(subject)) if wrong.is_empty() => {
            let selection = RuleSelection::Matching;
            let question = Question { scope, subject, selection, cost: Cost::ONE };
            respond(&checks, &question.into(), max).await
        }
        (scope, subject) => {
            wrong.extend(scope.err().into_iter().chain(subject.err()));
            Err(ApiError::Invalid(wrong))
        }
    }
}

/// Lists the holders of the places that an acquisition with these attributes would take.
#[utoipa::path(
    post,
    path = PATH,
    tag = "leases",
    operation_id = "list_holders_by_attributes",
    params(
        ("max" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "Maximum number of holders per rule; default 100"),
    ),
    request_body = WireExplain<'_>,
    security(("token" = [])),
    responses((status = 200, description = "The holders", body = WireHolders), WithBody, Protected, Failing),
)]
pub(super) async fn list_by_attributes(
    State(checks): State<Arc<MeteredChecks>>,
    caller: Caller,
    query: Query,
    body: JsonBody,
) -> Result<Response, ApiError> {
    caller.may(Action::ReadUsage).await?;
    let mut reader = query.reader(&[&["max"]]);
    let max = max(&mut reader);
    reader.finish()?;
    let wire: WireExplain<'_> = body.parse()?;
    let attributes = wire.read().map_err(ApiError::Invalid)?;
    let question = AttributesQuestion { attributes, defaulted: None, cost: Cost::ONE };
    respond(&checks, &question.into(), max).await
}

/// Reads `max`.
fn max(reader: &mut Reader<'_>) -> usize {
    let wrong = || format!("max must be a number from 1 to {}", Holders::MAX_LISTED);
    let Some(max) = reader.parsed("max", wrong) else { return DEFAULT_MAX };
    if !(1..=Holders::MAX_LISTED).contains(&max) {
        reader.refuse("max", wrong());
    }
    max
}

async fn respond(
    checks: &MeteredChecks,
    question: &AnyQuestion<'_>,
    max: usize,
) -> Result<Response, ApiError> {
    let listed = checks.holders(question, max).await?;
    Ok(json::respond(&WireHolders { rules: listed.iter().map(WireRuleHolders::from).collect() }))
}

impl From<&RuleHolders> for WireRuleHolders {
    fn from(RuleHolders { rule, subject, holders, .. }: &RuleHolders) -> Self {
        let stored = rule.rule();
        Self {
            rule_id: stored.map(|rule| rule.id.to_string()),
            rule_name: stored.map_or_else(|| "default".to_owned(), RateLimitRule::display_name),
            subject: subject.clone(),
            limit: rule.units(),
            taken: holders.taken,
            total: holders.total,
            at: holders.at,
            holders: holders.first.iter().map(|one| WireHolder::new(one, holders.at)).collect(),
        }
    }
}

impl WireHolder {
    fn new(holder: &Holder, now: Timestamp) -> Self {
        let expires_at = Timestamp::from_micros(holder.end);
        Self {
            holder: PlaceLeaseId::handle(holder.id),
            places: holder.places,
            expires_at,
            expires_in_ms: expires_at.since(now).div_ceil(1000),
        }
    }
}
