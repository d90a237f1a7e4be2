//! Who calls: the token they bring and the name of their call.

use headgate_auth::Action;
use headgate_ratelimit::Author;
use tonic::{Request, metadata::MetadataValue};

use super::error::CallError;
use crate::services::Services;

/// Whoever calls, if they may do `action`.
pub(super) async fn may<T: Sync>(
    services: &Services,
    request: &Request<T>,
    action: Action,
) -> Result<Author, CallError> {
    let metadata = request.metadata();
    let token = metadata.get("authorization").map(MetadataValue::as_encoded_bytes);
    let actor = services.auth.authorize(token, action).await?;
    // The surface has put it there, whoever made it up.
    let request_id = metadata.get("x-request-id").and_then(|id| id.to_str().ok());
    Ok(services.author(actor, request_id.unwrap_or_default()))
}
