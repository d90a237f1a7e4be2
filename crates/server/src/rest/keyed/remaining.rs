//! `GET /api/v1/rate-limit/remaining`: the remaining permits of a key.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};

use super::{
    KeyedApi, answer, described,
    described::{Looked, Refused},
    parameters::Parameters,
};
use crate::rest::{client::Peer, error::ApiError};

/// The path.
pub(in crate::rest) const PATH: &str = "/api/v1/rate-limit/remaining";

/// Shows the remaining permits of a key, and takes nothing.
#[utoipa::path(
    get,
    path = PATH,
    tag = "keys",
    operation_id = "remaining_of_key",
    params(
        ("algorithm" = inline(Option<described::Algorithm>), Query, description = "Algorithm; default: the configured one"),
        ("key" = Option<String>, Query, min_length = 1, max_length = 512, pattern = r"^[^\x00-\x1F\x7F{}]+$", example = "user:123", description = "Key; default: the client's address"),
    ),
    responses(Looked, Refused),
)]
pub(in crate::rest) async fn remaining(
    State(keyed): State<Arc<KeyedApi>>,
    request: Request,
) -> Result<Response, ApiError> {
    let (head, _) = request.into_parts();
    let settings = keyed.settings();
    let parameters = Parameters::read(&head, &Parameters::OF_SUBJECT)?;
    let parameters = parameters.or_client(&head, Peer::of(&head), &settings.clients);
    let question = parameters.subject(settings.default_algorithm)?;

    let verdict = keyed.keys.peek(&settings.limits, &question).await?;
    Ok(answer::remaining(&question, &verdict))
}
