//! Time that a client has to authenticate.

use super::second::Second;
use crate::documents::AuthSettings;

/// Time that one connection has to authenticate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AuthDeadline {
    connected_at: Second,
    asked_at: Option<Second>,
}

/// Reason for closing an unauthenticated connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// It did not authenticate within the timeout of new connections.
    Timeout,
    /// It is older than the requirement, and its grace period is over.
    Deadline,
}

// === impl AuthDeadline ===

impl AuthDeadline {
    pub(crate) const fn new(connected_at: Second) -> Self {
        Self { connected_at, asked_at: None }
    }

    /// Starts the timeout at `now`, unless it has started. Returns true if the challenge must be
    /// sent.
    pub(crate) fn ask(&mut self, now: Second) -> bool {
        let is_first = self.asked_at.is_none();
        self.asked_at.get_or_insert(now);
        is_first
    }

    /// Resets the timeout: authentication is not required any more.
    pub(crate) fn forget(&mut self) {
        self.asked_at = None;
    }

    /// Returns the reason for closing the connection, which is not authenticated, at `now`, if any.
    pub(crate) fn expiry(&self, auth: &AuthSettings, now: Second) -> Option<Expiry> {
        if !auth.is_enforced(now) {
            return None;
        }
        match (auth.enforce_at, auth.deadline()) {
            (Some(from), Some(deadline)) if self.connected_at < from => {
                (now >= deadline).then_some(Expiry::Deadline)
            }
            // Without `enforce_at`, the timeout begins with the challenge: the connection may be
            // older than the document.
            _ => {
                let asked_at = self.asked_at.unwrap_or(now);
                let waited = now.saturating_sub(asked_at);
                (waited >= auth.ws_auth_timeout_seconds).then_some(Expiry::Timeout)
            }
        }
    }
}

// === impl Expiry ===

impl Expiry {
    /// Label in metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Deadline => "deadline",
        }
    }

    /// Notice to the client before it is disconnected.
    pub(crate) const fn notice(self) -> &'static str {
        match self {
            Self::Timeout => "auth-required: timeout",
            Self::Deadline => "auth-required: deadline reached",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::AuthMode;

    fn required(enforce_at: Option<u64>) -> AuthSettings {
        AuthSettings {
            mode: AuthMode::Required,
            enforce_at,
            grace_seconds: 900,
            ws_auth_timeout_seconds: 10,
        }
    }

    #[test]
    fn connections_never_expire_while_authentication_is_off() {
        let mut auth_deadline = AuthDeadline::new(100);
        auth_deadline.ask(100);
        assert_eq!(auth_deadline.expiry(&AuthSettings::OFF, 100_000), None);
        assert_eq!(auth_deadline.expiry(&required(Some(2_000)), 1_999), None);
    }

    #[test]
    fn older_connections_expire_after_the_grace_period() {
        let mut auth_deadline = AuthDeadline::new(1_999);
        auth_deadline.ask(2_000);
        let auth = required(Some(2_000));
        assert_eq!(auth_deadline.expiry(&auth, 2_010), None, "not the timeout of new connections");
        assert_eq!(auth_deadline.expiry(&auth, 2_899), None);
        assert_eq!(auth_deadline.expiry(&auth, 2_900), Some(Expiry::Deadline));
    }

    #[test]
    fn newer_connections_expire_after_the_timeout() {
        let mut auth_deadline = AuthDeadline::new(2_000);
        auth_deadline.ask(2_000);
        let auth = required(Some(2_000));
        assert_eq!(auth_deadline.expiry(&auth, 2_009), None);
        assert_eq!(auth_deadline.expiry(&auth, 2_010), Some(Expiry::Timeout));
    }

    #[test]
    fn without_enforce_at_the_timeout_begins_with_the_challenge() {
        let mut auth_deadline = AuthDeadline::new(100);
        let auth = required(None);
        assert_eq!(auth_deadline.expiry(&auth, 5_000), None, "it was never asked");
        assert!(auth_deadline.ask(5_000));
        assert!(!auth_deadline.ask(5_005), "it was asked before");
        assert_eq!(auth_deadline.expiry(&auth, 5_009), None);
        assert_eq!(auth_deadline.expiry(&auth, 5_010), Some(Expiry::Timeout));
        auth_deadline.forget();
        assert!(auth_deadline.ask(6_000));
        assert_eq!(auth_deadline.expiry(&auth, 6_009), None);
    }
}
