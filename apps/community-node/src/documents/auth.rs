//! Authentication of a service's clients.

use headgate_service_config::{LoadError, Reader};

/// Authentication requirement for clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMode {
    /// Not required.
    Off,
    /// Required from [`AuthSettings::enforce_at`] on.
    Required,
}

/// Authentication settings of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthSettings {
    /// Authentication requirement.
    pub mode: AuthMode,
    /// Time from which it applies, in seconds since the Unix epoch; at once if `None`.
    pub enforce_at: Option<u64>,
    /// Grace period of connections that were open before `enforce_at`.
    pub grace_seconds: u64,
    /// Timeout for a new connection to authenticate.
    pub ws_auth_timeout_seconds: u64,
}

/// The last second of the year 9999.
const LATEST: u64 = 253_402_300_799;

/// Maximum grace period: a day.
const LONGEST_GRACE: u64 = 86_400;

// === impl AuthSettings ===

impl AuthSettings {
    /// No authentication.
    pub const OFF: Self = Self {
        mode: AuthMode::Off,
        enforce_at: None,
        grace_seconds: 900,
        ws_auth_timeout_seconds: 10,
    };

    /// Authentication is required at once.
    pub const REQUIRED: Self = Self { mode: AuthMode::Required, ..Self::OFF };

    /// Settings to use without a document. A missing document never required authentication; one
    /// that cannot be loaded may have, so clients must authenticate.
    pub const fn safe_defaults(error: &LoadError) -> Self {
        match error {
            LoadError::Missing => Self::OFF,
            LoadError::Invalid { .. } | LoadError::Unreadable(_) => Self::REQUIRED,
        }
    }

    /// Returns true if clients must authenticate at `now`, in seconds since the Unix epoch.
    pub fn is_enforced(&self, now: u64) -> bool {
        self.mode == AuthMode::Required && self.enforce_at.is_none_or(|from| from <= now)
    }

    /// Deadline for connections that were open before `enforce_at`.
    pub fn deadline(&self) -> Option<u64> {
        let from = self.enforce_at.filter(|_| self.mode == AuthMode::Required)?;
        Some(from.saturating_add(self.grace_seconds))
    }

    /// Reads the section of a service with HTTP requests only.
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let others = [("required", AuthMode::Required)];
        Self {
            mode: reader.choice("mode", ("off", AuthMode::Off), &others),
            enforce_at: reader.optional_number("enforce_at", 0..=LATEST),
            grace_seconds: reader.number(
                "grace_seconds",
                0..=LONGEST_GRACE,
                Self::OFF.grace_seconds,
            ),
            ..Self::OFF
        }
    }

    /// Reads the section of a service with WebSocket connections.
    pub(super) fn read_ws(reader: &mut Reader<'_>) -> Self {
        let timeout = Self::OFF.ws_auth_timeout_seconds;
        let ws_auth_timeout_seconds = reader.number("ws_auth_timeout_seconds", 1..=600, timeout);
        Self { ws_auth_timeout_seconds, ..Self::read(reader) }
    }
}
