//! Authorization of a call.

use std::{borrow::Cow, sync::Arc};

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
    let authorization = authorization(request);
    let credentials = Credentials {
        authorization: authorization.as_deref(),
        certificate: request.extensions().get::<ClientCertificate>(),
    };
    let actor = access.auth().authorize(credentials, action).await?;
    // The surface has put it there, whether the caller sent one or not.
    let request_id = request.metadata().get("x-request-id").and_then(|id| id.to_str().ok());
    Ok(access.author(actor, request_id.unwrap_or_default()))
}

/// The caller of a stream. Each message is authorized: meanwhile, its token may have expired, or a
/// reload may have removed it.
pub(super) struct StreamCaller {
    access: Arc<Access>,
    authorization: Option<Vec<u8>>,
    certificate: Option<ClientCertificate>,
}

impl StreamCaller {
    pub(super) fn new<T>(access: &Arc<Access>, request: &Request<T>) -> Self {
        Self {
            access: Arc::clone(access),
            authorization: authorization(request).map(Cow::into_owned),
            certificate: request.extensions().get().cloned(),
        }
    }

    /// Fails unless the caller is still permitted to do `action`.
    pub(super) async fn may(&self, action: Action) -> Result<(), CallError> {
        let credentials = Credentials {
            authorization: self.authorization.as_deref(),
            certificate: self.certificate.as_ref(),
        };
        self.access.auth().authorize(credentials, action).await?;
        Ok(())
    }
}

/// The metadata `authorization`.
fn authorization<T>(request: &Request<T>) -> Option<Cow<'_, [u8]>> {
    let all = request.metadata().get_all("authorization");
    joined(all.iter().map(MetadataValue::as_encoded_bytes))
}

/// Joins several values as RFC 9110 says, which is no valid token: a proxy may have verified
/// another one than the first.
fn joined<'v>(mut values: impl Iterator<Item = &'v [u8]>) -> Option<Cow<'v, [u8]>> {
    let first = Cow::Borrowed(values.next()?);
    Some(values.fold(first, |all, value| [&*all, b", ", value].concat().into()))
}
