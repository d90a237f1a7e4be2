//! Authorization of a call.

use std::borrow::Cow;

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
    let all = metadata.get_all("authorization").iter().map(MetadataValue::as_encoded_bytes);
    let authorization = joined(all);
    let credentials = Credentials {
        authorization: authorization.as_deref(),
        certificate: request.extensions().get::<ClientCertificate>(),
    };
    let actor = access.auth().authorize(credentials, action).await?;
    // The surface has put it there, whether the caller sent one or not.
    let request_id = metadata.get("x-request-id").and_then(|id| id.to_str().ok());
    Ok(access.author(actor, request_id.unwrap_or_default()))
}

/// Joins several values as RFC 9110 says, which is no valid token: a proxy may have verified
/// another one than the first.
fn joined<'v>(mut values: impl Iterator<Item = &'v [u8]>) -> Option<Cow<'v, [u8]>> {
    let first = Cow::Borrowed(values.next()?);
    Some(values.fold(first, |all, value| [&*all, b", ", value].concat().into()))
}
