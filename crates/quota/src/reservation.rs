//! Reservations: units that are set aside before their use is known.

use std::{fmt, str::FromStr, time::Duration};

use headgate::Timestamp;
use thiserror::Error;

use crate::id::sortable;

/// Units that are set aside for a while. They count against the limit until they are charged, come
/// back, or the TTL is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Its id.
    pub id: ReservationId,
    /// Idempotency key.
    pub request_id: Option<String>,
    /// Units that were reserved at first.
    pub amount: u64,
    /// Units that are reserved now.
    pub held: u64,
    /// Units that it has charged, by use and by settling.
    pub charged: u64,
    /// Units that came back when it ended.
    pub returned: u64,
    /// Units that it was settled for, but that the limit did not allow to charge.
    pub owed: u64,
    /// Pending, or how it ended.
    pub status: ReservationStatus,
    /// `false` if the policy was disabled when it was made: then it charges nothing.
    pub metered: bool,
    /// Time to live, from its creation and from each use.
    pub ttl: Duration,
    /// Time at which its units come back, by the ledger's clock.
    pub expires_at: Timestamp,
    /// Time of its creation, by the ledger's clock.
    pub created_at: Timestamp,
    /// The latest use.
    pub last_use: Option<LastUse>,
    /// The request that settled it.
    pub settled_for: Option<SettledFor>,
}

/// The state of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReservationStatus {
    /// It holds its units.
    Pending,
    /// It was settled.
    Settled,
    /// It was cancelled.
    Cancelled,
    /// Its TTL was over before it was settled or cancelled.
    Expired,
}

/// A use of a reservation, kept so that a retry is charged once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastUse {
    /// Idempotency key.
    pub request_id: Option<String>,
    /// Units that were used.
    pub amount: u64,
    /// Units of them that were charged.
    pub charged: u64,
    /// Units of them that the limit did not allow to charge.
    pub owed: u64,
    /// `true` if the reservation held nothing afterwards, and the limit allowed no more.
    pub stop: bool,
}

/// A request to settle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettledFor {
    /// Units in all.
    pub amount: u64,
    /// `true` if the limit could be passed.
    pub overdraft: bool,
}

/// Id of a reservation: `qres_2026-02_01KB...`. It names the period, so that the ledger finds the
/// row to lock without a search.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReservationId {
    text: String,
    /// Bounds of the period's name in `text`.
    period: (usize, usize),
}

/// Invalid id of a reservation.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("not the id of a reservation")]
pub struct ReservationIdError;

/// Unknown state of a reservation.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("must be one of: pending, settled, cancelled, expired")]
pub struct UnknownReservationStatus;

/// Prefix of ids.
const PREFIX: &str = "qres_";

// === impl Reservation ===

impl Reservation {
    /// TTL of a reservation that names none.
    pub const DEFAULT_TTL: Duration = Duration::from_secs(30);

    /// Minimum TTL.
    pub const MIN_TTL: Duration = Duration::from_secs(1);

    /// Maximum TTL.
    pub const MAX_TTL: Duration = Duration::from_secs(3_600);

    /// Returns `true` if it is pending and its TTL is over.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.status == ReservationStatus::Pending && self.expires_at <= now
    }

    /// Ends it: what it holds comes back.
    pub fn end(&mut self, status: ReservationStatus) {
        self.status = status;
        self.returned = std::mem::take(&mut self.held);
    }
}

// === impl ReservationStatus ===

impl ReservationStatus {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Pending, Self::Settled, Self::Cancelled, Self::Expired];

    /// Returns the name in APIs and in the database.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Settled => "settled",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
        }
    }
}

impl FromStr for ReservationStatus {
    type Err = UnknownReservationStatus;

    fn from_str(name: &str) -> Result<Self, UnknownReservationStatus> {
        let found = Self::ALL.into_iter().find(|status| status.name() == name);
        found.ok_or(UnknownReservationStatus)
    }
}

impl fmt::Display for ReservationStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

// === impl ReservationId ===

impl ReservationId {
    /// Maximum length in bytes.
    pub const MAX_BYTES: usize = 64;

    /// Generates an id for a reservation in the period with this name.
    pub fn new(period_name: &str, now: Timestamp) -> Self {
        let text = format!("{PREFIX}{period_name}_{}", sortable(now));
        Self { text, period: (PREFIX.len(), PREFIX.len() + period_name.len()) }
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the name of the period to which the reservation belongs.
    pub fn period_name(&self) -> &str {
        &self.text[self.period.0..self.period.1]
    }
}

impl FromStr for ReservationId {
    type Err = ReservationIdError;

    fn from_str(text: &str) -> Result<Self, ReservationIdError> {
        let rest = text.strip_prefix(PREFIX).ok_or(ReservationIdError)?;
        let (period, random) = rest.split_once('_').ok_or(ReservationIdError)?;
        let named = matches!(period.len(), 7 | 10)
            && period.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        let safe = !random.is_empty() && random.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if text.len() > Self::MAX_BYTES || !named || !safe {
            return Err(ReservationIdError);
        }
        let period = (PREFIX.len(), PREFIX.len() + period.len());
        Ok(Self { text: text.to_owned(), period })
    }
}

impl fmt::Display for ReservationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_its_period() {
        let now = Timestamp::from_micros(1_771_840_800_000_000);
        for period in ["2026-02-23", "2026-02"] {
            let id = ReservationId::new(period, now);
            assert_eq!(id.period_name(), period);
            assert_eq!(id.as_str().parse(), Ok(id.clone()));
            assert_ne!(id, ReservationId::new(period, now));
            assert!(id.as_str().len() <= ReservationId::MAX_BYTES);
        }
    }

    #[test]
    fn other_texts_are_not_ids() {
        let long = format!("qres_2026-02_{}", "A".repeat(60));
        let wrong =
            ["", "qres_", "qres_2026-02", "qres_2026-02_", "qres_2026_A", "qres_2026-0x_A", &long];
        for text in
            wrong.into_iter().chain(["quota_2026-02_A", "qres_2026-02_A B", "qres_2026-02_é"])
        {
            assert_eq!(text.parse::<ReservationId>(), Err(ReservationIdError), "{text}");
        }
    }

    #[test]
    fn states_are_parsed_by_their_names() {
        for status in ReservationStatus::ALL {
            assert_eq!(status.name().parse(), Ok(status));
        }
        assert_eq!("gone".parse::<ReservationStatus>(), Err(UnknownReservationStatus));
    }
}
