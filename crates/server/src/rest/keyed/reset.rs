//! `DELETE /api/v1/rate-limit/reset`: restores the whole limit of a key.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::header::CACHE_CONTROL,
    response::Response,
};
use headgate_auth::Action;
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    KeyedApi, described,
    described::{Protected, Refused},
    parameters::Parameters,
};
use crate::rest::{
    caller::Caller,
    error::{ApiError, NO_STORE},
    json,
};

/// The path.
pub(in crate::rest) const PATH: &str = "/api/v1/rate-limit/reset";

/// The outcome.
#[derive(Serialize, ToSchema)]
#[schema(as = RateLimitReset)]
struct WireReset<'a> {
    /// Always `reset`.
    status: &'static str,
    #[schema(example = "user:123")]
    key: &'a str,
}

/// Restores the whole limit of a key, under one algorithm or under all.
#[utoipa::path(
    delete,
    path = PATH,
    tag = "keys",
    operation_id = "reset_key",
    params(
        ("algorithm" = inline(Option<described::Algorithm>), Query, description = "Algorithm; default: all"),
        ("key" = String, Query, min_length = 1, max_length = 512, pattern = r"^[^\x00-\x1F\x7F{}]+$", example = "user:123", description = "Key"),
    ),
    security(("token" = [])),
    responses((status = 200, description = "The reset is done", body = WireReset<'_>), Protected, Refused),
)]
pub(in crate::rest) async fn reset(
    State(keyed): State<Arc<KeyedApi>>,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    let author = caller.may(Action::ResetCounters).await?;
    let (head, _) = request.into_parts();
    let parameters = Parameters::read(&head, &Parameters::OF_SUBJECT)?;
    let settings = keyed.settings.load_full();
    let key = parameters.subject(settings.default_algorithm)?.key;

    let limits = Arc::clone(&settings.limits);
    keyed.keys.reset(limits, parameters.algorithm, key, author).await?;
    let mut response = json::respond(&WireReset { status: "reset", key: key.subject() });
    response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
    Ok(response)
}
