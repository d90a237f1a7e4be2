//! `POST /api/v1/ratelimit/holders/{holder}/end`: ends the lease of a holder.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use headgate::Cost;
use headgate_api::rate_limits::{MeteredChecks, ReservationRefusal, RuleAdmin};
use headgate_auth::Action;
use headgate_ratelimit::usecase::{
    AnyQuestion, AttributesQuestion, Question, check::RuleSelection,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::rest::{
    caller::Caller,
    error::ApiError,
    json,
    json_body::JsonBody,
    path::PathParam,
    reset::{ResetTarget, WireReset},
    schemas::{Failing, NoSuchLease, Protected, WithBody},
};

/// The path.
pub(in crate::rest) const PATH: &str = "/api/v1/ratelimit/holders/{holder}/end";

/// The outcome.
#[derive(Serialize, ToSchema)]
#[schema(as = EndedLease)]
pub(in crate::rest) struct WireEnded {
    holder: String,
    /// False if the lease had ended meanwhile.
    ended: bool,
}

/// Ends the lease of a holder: its places under this subject are free at once, and its next renewal is refused with 409.
///
/// The work of the holder is not stopped: make sure that it is dead, or that it stops on a refused renewal. Recorded in
/// the audit log as `lease.end`.
#[utoipa::path(
    post,
    path = PATH,
    tag = "leases",
    operation_id = "end_lease",
    params(("holder" = String, Path, description = "The holder, as listed")),
    request_body = WireReset<'_>,
    security(("token" = [])),
    responses((status = 200, description = "The lease has ended", body = WireEnded), NoSuchLease, WithBody, Protected, Failing),
)]
pub(in crate::rest) async fn end(
    State(checks): State<Arc<MeteredChecks>>,
    State(admin): State<Arc<RuleAdmin>>,
    caller: Caller,
    PathParam(holder): PathParam,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let author = caller.may(Action::ResetCounters).await?;
    let wire: WireReset<'_> = body.parse()?;
    let (target, reason) = wire.read().map_err(ApiError::Invalid)?;
    let found = checks.find_lease(&question(target), &holder).await?;
    let lease = found.ok_or_else(|| ReservationRefusal::no_such_lease(&holder))?;
    let ended = admin.end_lease(lease, holder.clone(), reason, author).await?;
    Ok(json::respond(&WireEnded { holder, ended }))
}

fn question(target: ResetTarget<'_>) -> AnyQuestion<'_> {
    let cost = Cost::ONE;
    match target {
        ResetTarget::Subject(scope, subject) => {
            Question { scope, subject, selection: RuleSelection::Matching, cost }.into()
        }
        ResetTarget::Attributes(attributes) => {
            AttributesQuestion { attributes: *attributes, defaulted: None, cost }.into()
        }
    }
}
