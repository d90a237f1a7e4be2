//! What a policy says.

use headgate::{LimitError, Timestamp};

use crate::{QuotaId, QuotaPeriod, Span, Spans, Subject};

/// A policy that is in force, or would be if it were enabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaPolicy {
    /// Its name for programs.
    pub id: QuotaId,
    /// What it says.
    pub spec: QuotaSpec,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// What a policy says. It is made by [`Draft::validate`](crate::Draft::validate) alone, so that
/// one which exists is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuotaSpec {
    /// Its name for people.
    pub name: String,
    /// Whom it is about.
    pub subject: Subject,
    /// How much the subject may use: 1 to 2^53.
    pub limit: u64,
    /// In which period.
    pub period: QuotaPeriod,
    /// By the calendar of which zone, as an IANA name; UTC where none is named.
    pub time_zone: Option<String>,
    /// Whether it is applied: a disabled policy admits everything and counts nothing.
    pub enabled: bool,
    /// From which percentage on an alert is raised, if one is.
    pub alert_threshold_percent: Option<u8>,
}

// === impl QuotaSpec ===

impl QuotaSpec {
    /// What makes it another policy than all others.
    pub fn identity(&self) -> (&Subject, QuotaPeriod) {
        (&self.subject, self.period)
    }

    /// The days or months that it counts by.
    pub fn spans(&self) -> Result<Spans, LimitError> {
        Spans::new(self.period, self.time_zone.as_deref())
    }

    /// The day or month that `moment` is in.
    pub fn span(&self, moment: Timestamp) -> Result<Span, LimitError> {
        Ok(self.spans()?.at(moment))
    }
}
