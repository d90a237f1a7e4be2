//! How long a client that does not say who it is may stay.

use super::second::Second;
use crate::documents::AuthSettings;

/// What one connection remembers of being asked who it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    connected_at: Second,
    asked_at: Option<Second>,
}

/// Why a connection that did not say who it is must go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// It was asked when it came, and took too long.
    Timeout,
    /// It was there before anybody was asked, and its grace is over.
    Deadline,
}

// === impl Patience ===

impl Patience {
    pub(crate) const fn new(connected_at: Second) -> Self {
        Self { connected_at, asked_at: None }
    }

    /// Remembers that the connection was asked at `now`, if it was not before. Whether it is to be
    /// asked now.
    pub(crate) fn ask(&mut self, now: Second) -> bool {
        let is_first = self.asked_at.is_none();
        self.asked_at.get_or_insert(now);
        is_first
    }

    /// Forgets it: nobody has to say who they are any more.
    pub(crate) fn forget(&mut self) {
        self.asked_at = None;
    }

    /// Whether the connection, which did not say who it is, must go.
    pub(crate) fn expiry(&self, auth: &AuthSettings, now: Second) -> Option<Expiry> {
        if !auth.is_enforced(now) {
            return None;
        }
        match (auth.enforce_at, auth.deadline()) {
            (Some(from), Some(deadline)) if self.connected_at < from => {
                (now >= deadline).then_some(Expiry::Deadline)
            }
            // Where nobody said from when on, it counts from when the connection was asked:
            // it may be older than the document.
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
    /// The name in metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Deadline => "deadline",
        }
    }

    /// What the client is told before it goes.
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
    fn nobody_goes_while_nobody_must_say_who_they_are() {
        let mut patience = Patience::new(100);
        patience.ask(100);
        assert_eq!(patience.expiry(&AuthSettings::OFF, 100_000), None);
        assert_eq!(patience.expiry(&required(Some(2_000)), 1_999), None);
    }

    #[test]
    fn who_was_there_before_has_until_the_end_of_the_grace() {
        let mut patience = Patience::new(1_999);
        patience.ask(2_000);
        let auth = required(Some(2_000));
        assert_eq!(patience.expiry(&auth, 2_010), None, "not the timeout of new connections");
        assert_eq!(patience.expiry(&auth, 2_899), None);
        assert_eq!(patience.expiry(&auth, 2_900), Some(Expiry::Deadline));
    }

    #[test]
    fn who_came_later_has_the_timeout() {
        let mut patience = Patience::new(2_000);
        patience.ask(2_000);
        let auth = required(Some(2_000));
        assert_eq!(patience.expiry(&auth, 2_009), None);
        assert_eq!(patience.expiry(&auth, 2_010), Some(Expiry::Timeout));
    }

    #[test]
    fn without_a_moment_the_timeout_begins_when_the_connection_was_asked() {
        let mut patience = Patience::new(100);
        let auth = required(None);
        assert_eq!(patience.expiry(&auth, 5_000), None, "it was never asked");
        assert!(patience.ask(5_000));
        assert!(!patience.ask(5_005), "it was asked before");
        assert_eq!(patience.expiry(&auth, 5_009), None);
        assert_eq!(patience.expiry(&auth, 5_010), Some(Expiry::Timeout));
        patience.forget();
        assert!(patience.ask(6_000));
        assert_eq!(patience.expiry(&auth, 6_009), None);
    }
}
