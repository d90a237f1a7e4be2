//! `GET` and `POST /api/v1/rate-limit/check`: decisions by key.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::request::Parts,
    response::Response,
};

use super::{
    KeyedApi, answer, described,
    described::{Decided, Refused},
    parameters::Parameters,
};
use crate::rest::{client::Peer, error::ApiError};

/// The path.
pub(in crate::rest) const PATH: &str = "/api/v1/rate-limit/check";

/// Admits or denies a request of a key, and takes its permits if it is admitted. Prefer `POST`: clients may prefetch or retry a `GET`.
#[utoipa::path(
    get,
    path = PATH,
    tag = "keys",
    operation_id = "check_key",
    params(
        ("algorithm" = inline(Option<described::Algorithm>), Query, description = "Algorithm; default: the configured one"),
        ("key" = Option<String>, Query, min_length = 1, max_length = 512, pattern = r"^[^\x00-\x1F\x7F{}]+$", example = "user:123", description = "Key; default: the client's address"),
        ("permits" = Option<u64>, Query, minimum = 1, description = "Permits to take, at most the whole limit; default 1"),
    ),
    responses(Decided, Refused),
)]
pub(in crate::rest) async fn by_get(
    State(keyed): State<Arc<KeyedApi>>,
    request: Request,
) -> Result<Response, ApiError> {
    let (head, _) = request.into_parts();
    check(&keyed, &head, Peer::of(&head)).await
}

/// Admits or denies a request of a key, and takes its permits if it is admitted. Parameters are in the query; a body is ignored.
#[utoipa::path(
    post,
    path = PATH,
    tag = "keys",
    operation_id = "check_key_by_post",
    params(
        ("algorithm" = inline(Option<described::Algorithm>), Query, description = "Algorithm; default: the configured one"),
        ("key" = Option<String>, Query, min_length = 1, max_length = 512, pattern = r"^[^\x00-\x1F\x7F{}]+$", example = "user:123", description = "Key; default: the client's address"),
        ("permits" = Option<u64>, Query, minimum = 1, description = "Permits to take, at most the whole limit; default 1"),
    ),
    responses(Decided, Refused),
)]
pub(in crate::rest) async fn by_post(
    State(keyed): State<Arc<KeyedApi>>,
    request: Request,
) -> Result<Response, ApiError> {
    let (head, _) = request.into_parts();
    check(&keyed, &head, Peer::of(&head)).await
}

/// Answers a request that came from `peer`.
pub(in crate::rest) async fn check(
    keyed: &KeyedApi,
    head: &Parts,
    peer: Option<Peer>,
) -> Result<Response, ApiError> {
    let settings = keyed.settings();
    let parameters =
        Parameters::read(head, &Parameters::OF_CHECK)?.or_client(head, peer, &settings.clients);
    let question = parameters.question(settings.default_algorithm, &settings.limits)?;

    let verdict = keyed.keys.check(&settings.limits, &question).await?;
    Ok(answer::decided(&question, &verdict))
}
