//! Authorization of a call.

use headgate_api::Access;
use headgate_auth::{Action, Credentials};
use headgate_ratelimit::Author;
use headgate_serve::ClientCertificate;
use tonic::{Request, metadata::MetadataValue};

use super::error::CallError;

/// The caller, if permitted to do `action`.
pub(super) async fn may<T: Sync>(
    access: &Access,
    request: &Request<T>,
    action: Action,
) -> Result<Author, CallError> {
    let metadata = request.metadata();
    let credentials = Credentials {
        authorization: metadata.get("authorization").map(MetadataValue::as_encoded_bytes),
        certificate: request.extensions().get::<ClientCertificate>(),
    };
    let actor = access.auth().authorize(credentials, action).await?;
    // The surface has put it there, whether the caller sent one or not.
    let request_id = metadata.get("x-request-id").and_then(|id| id.to_str().ok());
    Ok(access.author(actor, request_id.unwrap_or_default()))
}
