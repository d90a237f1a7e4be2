//! Authorization as REST and gRPC use it.

use std::sync::Arc;

use headgate::Clock;
use headgate_auth::{Actor, Auth};
use headgate_ratelimit::Author;

/// Authenticates callers, and returns the author for the audit log.
pub struct Access {
    /// Authentication, and what each role may do.
    pub auth: Auth,
    clock: Arc<dyn Clock>,
}

impl Access {
    /// Creates it; `clock` dates the changes.
    pub const fn new(auth: Auth, clock: Arc<dyn Clock>) -> Self {
        Self { auth, clock }
    }

    /// Returns the author of a change, for the audit log.
    pub fn author(&self, actor: Actor, request_id: &str) -> Author {
        Author {
            actor: actor.name.into_owned(),
            request_id: request_id.to_owned(),
            at: self.clock.now(),
        }
    }
}
