use std::future::Future;

use headgate_api::{Namespace, request_id::RequestId};
use tokio::task_local;

/// The body that errors of a route have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::rest) enum ErrorFormat {
    /// The envelope, with codes of rate limits.
    #[default]
    RateLimit,
    /// The envelope, with codes of quotas.
    Quota,
    /// The body of limits by key.
    Keyed,
}

impl ErrorFormat {
    /// The namespace of its codes.
    pub(in crate::rest) const fn namespace(self) -> Namespace {
        match self {
            Self::RateLimit | Self::Keyed => Namespace::RateLimit,
            Self::Quota => Namespace::Quota,
        }
    }
}

task_local! {
    static CURRENT: (ErrorFormat, RequestId);
}

/// Runs `answering` so that its errors have this format and id.
pub(in crate::rest) fn scope<F: Future>(
    format: ErrorFormat,
    id: RequestId,
    answering: F,
) -> impl Future<Output = F::Output> {
    CURRENT.scope((format, id), answering)
}

/// The format and id of the request at hand.
pub(super) fn current() -> (ErrorFormat, RequestId) {
    let current = CURRENT.try_with(Clone::clone);
    current.unwrap_or_else(|_| (ErrorFormat::default(), RequestId::generate()))
}
