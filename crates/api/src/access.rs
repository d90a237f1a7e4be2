//! Authorization as REST and gRPC use it.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use headgate::Clock;
use headgate_auth::{Actor, Auth};
use headgate_ratelimit::Author;
use tokio::sync::watch;

/// Authenticates callers, and returns the author for the audit log.
pub struct Access {
    auth: ArcSwap<Auth>,
    /// Notified when callers may have lost their access.
    replaced: watch::Sender<()>,
    clock: Arc<dyn Clock>,
}

impl Access {
    /// Creates it; `clock` dates the changes.
    pub fn new(auth: Auth, clock: Arc<dyn Clock>) -> Self {
        Self { auth: ArcSwap::from_pointee(auth), replaced: watch::Sender::new(()), clock }
    }

    /// Returns the authentication in force.
    pub fn auth(&self) -> Guard<Arc<Auth>> {
        self.auth.load()
    }

    /// Replaces the authentication, and returns the one before.
    pub fn replace(&self, auth: Auth) -> Arc<Auth> {
        self.auth.swap(Arc::new(auth))
    }

    /// Makes long responses authenticate their callers again.
    pub fn notify_replaced(&self) {
        self.replaced.send_replace(());
    }

    /// Receives a notification whenever callers may have lost their access.
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.replaced.subscribe()
    }

    /// Returns true if `actor`, whom `auth` has authenticated, is accepted by the authentication in
    /// force, which may have replaced it meanwhile.
    pub fn still_accepts(&self, actor: &Actor, auth: &Arc<Auth>) -> bool {
        let current = self.auth.load();
        Arc::ptr_eq(&current, auth) || current.still_accepts(actor, auth)
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
