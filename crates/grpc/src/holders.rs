//! The holders of places.

use headgate::{Holders, Timestamp, algorithm::concurrency::Holder as ListedHolder};
use headgate_api::rate_limits::{MeteredChecks, ReservationRefusal, RuleAdmin};
use headgate_ratelimit::{
    Author, Catalog, PlaceLeaseId, RateLimitRule,
    usecase::{AnyQuestion, check::holders::RuleHolders as ListedRule},
};

use super::{
    check::any_question,
    error::CallError,
    proto::{
        CheckRateLimitRequest, EndLeaseRequest, EndLeaseResponse, Holder, ListHoldersRequest,
        ListHoldersResponse, RuleHolders,
    },
    reset::reason,
    wire::{number, time},
};

/// Number of holders that are listed for each rule, unless the request says otherwise.
const DEFAULT_MAX: usize = 100;

pub(super) async fn list(
    checks: &MeteredChecks,
    catalog: &Catalog,
    wire: &ListHoldersRequest,
) -> Result<ListHoldersResponse, CallError> {
    let max = match wire.max as usize {
        0 => DEFAULT_MAX,
        max if max <= Holders::MAX_LISTED => max,
        _ => {
            let message = format!("max must be at most {}", Holders::MAX_LISTED);
            return Err(CallError::field("max", message));
        }
    };
    let question = question(catalog, wire.check.as_ref())?;
    let listed = checks.holders(&question, max).await?;
    Ok(ListHoldersResponse { rules: listed.iter().map(RuleHolders::from).collect() })
}

pub(super) async fn end(
    checks: &MeteredChecks,
    admin: &RuleAdmin,
    wire: &EndLeaseRequest,
    author: Author,
) -> Result<EndLeaseResponse, CallError> {
    if wire.holder.is_empty() {
        return Err(CallError::field("holder", "holder is required"));
    }
    let reason = reason(&wire.reason).map_err(|wrong| CallError::Invalid(vec![wrong]))?;
    let question = question(&admin.catalog, wire.check.as_ref())?;
    let found = checks.find_lease(&question, &wire.holder).await?;
    let lease = found.ok_or_else(|| ReservationRefusal::no_such_lease(&wire.holder))?;
    let ended = admin.end_lease(lease, wire.holder.clone(), reason, author).await?;
    Ok(EndLeaseResponse { ended })
}

fn question<'a>(
    catalog: &Catalog,
    check: Option<&'a CheckRateLimitRequest>,
) -> Result<AnyQuestion<'a>, CallError> {
    any_question(catalog, check.ok_or_else(|| CallError::field("check", "check is required"))?)
}

impl From<&ListedRule> for RuleHolders {
    fn from(ListedRule { rule, subject, holders, .. }: &ListedRule) -> Self {
        let stored = rule.rule();
        Self {
            rule_id: stored.map_or_else(String::new, |rule| rule.id.to_string()),
            rule_name: stored.map_or_else(|| "default".to_owned(), RateLimitRule::display_name),
            subject: subject.clone(),
            limit: number(rule.units()),
            taken: number(holders.taken),
            total: number(holders.total),
            at: Some(time(holders.at)),
            holders: holders.first.iter().map(Holder::from).collect(),
        }
    }
}

impl From<&ListedHolder> for Holder {
    fn from(holder: &ListedHolder) -> Self {
        Self {
            holder: PlaceLeaseId::handle(holder.id),
            places: holder.places,
            expires_at: Some(time(Timestamp::from_micros(holder.end))),
        }
    }
}
