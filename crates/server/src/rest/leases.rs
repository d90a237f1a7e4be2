//! `/api/v1/ratelimit/acquire` and `/leases`: places of concurrency limits.

mod wire;

use std::{sync::Arc, time::Duration};

use axum::{
    extract::State,
    http::{HeaderMap, HeaderValue, header::RETRY_AFTER},
    response::Response,
};
use headgate_api::rate_limits::{MeteredChecks, ReservationRefusal};
use headgate_ratelimit::{PlaceLeaseId, ReservationId, usecase::ReservationRequest};
use serde::Deserialize;
use utoipa::ToSchema;

use self::wire::{WireAcquired, WireReleased, WireRenewed};
use super::{
    check::{WireQuestion, request_id},
    error::{ApiError, Detail},
    field::Field,
    json,
    json_body::{EmptyBody, JsonBody, WireObject},
    path::PathParam,
    reservations,
    schemas::{Failing, LeaseEnded, NoSuchLease, WithBody},
};

/// The path of acquiring.
pub(super) const ACQUIRE: &str = "/api/v1/ratelimit/acquire";

/// The path of renewing.
pub(super) const RENEW: &str = "/api/v1/ratelimit/leases/{id}/renew";

/// The path of releasing.
pub(super) const RELEASE: &str = "/api/v1/ratelimit/leases/{id}/release";

/// Places to take.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(expecting = "a JSON object", deny_unknown_fields)]
#[schema(as = Acquire)]
pub(in crate::rest) struct WireAcquire<'a> {
    /// If one is denied, nothing is taken for any. `cost` is for rules that count; a concurrency rule takes one place.
    /// `dry_run`, `limits` and `request_id` are not for single checks here.
    #[serde(borrow, default)]
    #[schema(required = true, min_items = 1, max_items = 16)]
    checks: Vec<WireQuestion<'a>>,
    /// Seconds for which the places are held unless the lease is renewed or released; default 30. A rule holds them for
    /// its `window_seconds` at most.
    #[serde(borrow, default)]
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 3600, example = 30)]
    lease_seconds: Field<'a>,
    /// Idempotency key: a retry renews the same lease, and takes no other place. Rules that count are charged again.
    /// Default: the `Idempotency-Key` header.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 128, pattern = r"^[^\x00-\x1F\x7F-\x9F]+$", example = "req_abc123def456")]
    request_id: Field<'a>,
}

/// The new length of a lease.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(expecting = "a JSON object", deny_unknown_fields)]
#[schema(as = Renew)]
pub(in crate::rest) struct WireRenew<'a> {
    /// Seconds from now until the lease ends; default: as long as it was acquired for.
    #[serde(borrow, default)]
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 3600, example = 30)]
    lease_seconds: Field<'a>,
}

/// Takes a place under every concurrency rule of the checks, and their cost under the other rules, all or nothing.
///
/// Renew the lease while the work runs, and release it afterwards. A holder that dies frees its places when the lease
/// ends. A denial takes nothing; its `Retry-After` is an estimate, as holders may renew or release their leases.
#[utoipa::path(
    post,
    path = ACQUIRE,
    tag = "leases",
    operation_id = "acquire",
    params(("Idempotency-Key" = Option<String>, Header, description = "The `request_id`, if the body has none")),
    request_body = WireAcquire<'_>,
    responses(
        (
            status = 200,
            description = "The decision: a lease, or a denial",
            body = WireAcquired<'_>,
            headers(("Retry-After" = u64, description = "Seconds to wait before a retry, of a denial")),
        ),
        WithBody, Failing,
    ),
)]
pub(super) async fn acquire(
    State(checks): State<Arc<MeteredChecks>>,
    headers: HeaderMap,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let wire: WireAcquire<'_> = body.parse()?;
    let request = wire.validate(request_id(&wire.request_id, &headers));
    let request = request.map_err(ApiError::Invalid)?;
    let done = checks.acquire(&request).await.map_err(refused)?;
    let names = reservations::names(&done.verdicts);
    let mut response = json::respond(&WireAcquired::new(&done, &names));
    if done.lease.is_none() {
        let waits = done.verdicts.iter().flatten();
        let wait = waits.map(|verdict| verdict.decision.retry_after_secs()).max();
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait.unwrap_or(1)));
    }
    Ok(response)
}

/// Makes a lease end later.
///
/// While the store does not answer, the rule's `fail_mode` decides: `open` renews, `closed` refuses with 503, and the
/// others hold the place in this server, which `degraded` says.
#[utoipa::path(
    post,
    path = RENEW,
    tag = "leases",
    operation_id = "renew_lease",
    params(("id" = String, Path, description = "The lease's id")),
    request_body = WireRenew<'_>,
    responses((status = 200, description = "The lease goes on", body = WireRenewed<'_>), NoSuchLease, LeaseEnded, WithBody, Failing),
)]
pub(super) async fn renew(
    State(checks): State<Arc<MeteredChecks>>,
    PathParam(id): PathParam,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let id = parse_id(&id)?;
    let wire: WireRenew<'_> = body.parse()?;
    let lease = seconds(&wire.lease_seconds).map_err(|detail| ApiError::Invalid(vec![detail]))?;
    let renewed = checks.renew_lease(&id, lease).await.map_err(refused)?;
    Ok(json::respond(&WireRenewed::new(&id, &renewed)))
}

/// Frees the places of a lease.
///
/// A repeat is answered with `released: false`, as is the release of a lease that has ended.
#[utoipa::path(
    post,
    path = RELEASE,
    tag = "leases",
    operation_id = "release_lease",
    params(("id" = String, Path, description = "The lease's id")),
    responses((status = 200, description = "The places are free", body = WireReleased<'_>), NoSuchLease, WithBody, Failing),
)]
pub(super) async fn release(
    State(checks): State<Arc<MeteredChecks>>,
    PathParam(id): PathParam,
    body: EmptyBody,
) -> Result<Response, ApiError> {
    body.check()?;
    let id = parse_id(&id)?;
    let released = checks.release_lease(&id).await.map_err(refused)?;
    Ok(json::respond(&WireReleased::new(&id, released)))
}

impl<'a> WireObject<'a> for WireAcquire<'a> {
    fn problems(self) -> Vec<Detail> {
        let named = request_id(&self.request_id, &HeaderMap::new()).map(|_| None);
        self.validate(named).err().unwrap_or_default()
    }
}

impl<'a> WireObject<'a> for WireRenew<'a> {
    fn problems(self) -> Vec<Detail> {
        seconds(&self.lease_seconds).err().into_iter().collect()
    }
}

impl WireAcquire<'_> {
    /// Returns the request, or all that is invalid.
    fn validate<'s>(
        &'s self,
        request_id: Result<Option<&'s str>, Detail>,
    ) -> Result<ReservationRequest<'s>, Vec<Detail>> {
        let (checks, mut wrong) = reservations::read_checks(&self.checks);
        let lease = seconds(&self.lease_seconds).unwrap_or_else(|detail| {
            wrong.push(detail);
            None
        });
        let request_id = request_id.unwrap_or_else(|detail| {
            wrong.push(detail);
            None
        });
        let ttl = lease.unwrap_or(ReservationId::DEFAULT_TTL);
        let request = ReservationRequest { checks, ttl, request_id };
        if wrong.is_empty() { Ok(request) } else { Err(wrong) }
    }
}

fn seconds(field: &Field<'_>) -> Result<Option<Duration>, Detail> {
    match field {
        Field::Missing | Field::Null => Ok(None),
        given => reservations::duration("lease_seconds", given).map(Some),
    }
}

/// Parses an id; an invalid one is an unknown one.
fn parse_id(text: &str) -> Result<PlaceLeaseId, ApiError> {
    text.parse().map_err(|_| ReservationRefusal::no_such_lease(text).into())
}

/// The error of a lease, which is not a reservation.
fn refused(error: headgate_ratelimit::usecase::ReservationError) -> ApiError {
    ApiError::of_lease(error)
}
