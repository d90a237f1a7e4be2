//! Whether a service asks who its clients are.

use crate::reader::Reader;

/// Whether clients must say who they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMode {
    /// Nobody is asked.
    Off,
    /// Everybody is, from [`AuthSettings::enforce_at`] on.
    Required,
}

/// Whether and from when on a service asks who its clients are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthSettings {
    /// Whether clients must say who they are.
    pub mode: AuthMode,
    /// From when on, in seconds since the Unix epoch; at once if nothing is said.
    pub enforce_at: Option<u64>,
    /// How long connections that were there before may stay as they are.
    pub grace_seconds: u64,
    /// How long a new connection may take to say who it is.
    pub ws_auth_timeout_seconds: u64,
}

/// The last second of the year 9999.
const LATEST: u64 = 253_402_300_799;

/// A day.
const LONGEST_GRACE: u64 = 86_400;

// === impl AuthSettings ===

impl AuthSettings {
    /// Asks nobody.
    pub const OFF: Self = Self {
        mode: AuthMode::Off,
        enforce_at: None,
        grace_seconds: 900,
        ws_auth_timeout_seconds: 10,
    };

    /// Asks everybody at once.
    pub const REQUIRED: Self = Self { mode: AuthMode::Required, ..Self::OFF };

    /// Whether clients must say who they are at `now`, in seconds since the Unix epoch.
    pub fn is_enforced(&self, now: u64) -> bool {
        self.mode == AuthMode::Required && self.enforce_at.is_none_or(|from| from <= now)
    }

    /// When connections that were there before must have said who they are.
    pub fn deadline(&self) -> Option<u64> {
        let from = self.enforce_at.filter(|_| self.mode == AuthMode::Required)?;
        Some(from.saturating_add(self.grace_seconds))
    }

    /// Reads the section; `ws` says whether it is about a WebSocket.
    pub(crate) fn read(reader: &mut Reader<'_>, ws: bool) -> Self {
        let modes = [("off", AuthMode::Off), ("required", AuthMode::Required)];
        let usual = Self::OFF;
        let timeout = usual.ws_auth_timeout_seconds;
        Self {
            mode: reader.choice("mode", &modes, usual.mode),
            enforce_at: reader.optional_number("enforce_at", 0..=LATEST),
            grace_seconds: reader.number("grace_seconds", 0..=LONGEST_GRACE, usual.grace_seconds),
            ws_auth_timeout_seconds: if ws {
                reader.number("ws_auth_timeout_seconds", 1..=600, timeout)
            } else {
                timeout
            },
        }
    }
}
