//! Authorization as REST and gRPC use it.

use std::sync::Arc;

use headgate::Clock;
use headgate_auth::{Actor, Auth};
use headgate_ratelimit::Author;

/// Authenticates callers, and returns the author for the audit log.
pub(crate) struct Access {
    pub(crate) auth: Auth,
    clock: Arc<dyn Clock>,
}

impl Access {
    pub(crate) const fn new(auth: Auth, clock: Arc<dyn Clock>) -> Self {
        Self { auth, clock }
    }

    /// Returns the author of a change, for the audit log.
    pub(crate) fn author(&self, actor: Actor, request_id: &str) -> Author {
        Author {
            actor: actor.name.into_owned(),
            request_id: request_id.to_owned(),
            at: self.clock.now(),
        }
    }
}
