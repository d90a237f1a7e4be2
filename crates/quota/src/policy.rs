//! Policies.

use headgate::{LimitError, Timestamp};

use crate::{PeriodCalendar, PeriodSpan, QuotaId, QuotaPeriod, Subject};

/// A stored policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaPolicy {
    /// Its id.
    pub id: QuotaId,
    /// Its fields.
    pub spec: QuotaSpec,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

/// The fields of a policy. Only a [`Draft`](crate::Draft) creates one, so that it is always valid,
/// except that the time zone of a stored policy may be unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuotaSpec {
    /// Display name.
    pub name: String,
    /// Subject.
    pub subject: Subject,
    /// Units that the subject may consume per period: 1 to 2^53.
    pub limit: u64,
    /// Length of a period.
    pub period: QuotaPeriod,
    /// IANA name of the time zone whose calendar bounds the periods; UTC if there is none.
    pub time_zone: Option<String>,
    /// `true` if it is enforced. A disabled policy admits everything and counts nothing.
    pub enabled: bool,
    /// Usage in percent of the limit at which a threshold event is recorded.
    pub alert_threshold_percent: Option<u8>,
}

// === impl QuotaSpec ===

impl QuotaSpec {
    /// Returns what identifies a policy among others: subject and period.
    pub fn identity(&self) -> (&Subject, QuotaPeriod) {
        (&self.subject, self.period)
    }

    /// Returns the calendar of its periods.
    pub fn calendar(&self) -> Result<PeriodCalendar, LimitError> {
        PeriodCalendar::new(self.period, self.time_zone.as_deref())
    }

    /// Returns the period that contains `moment`.
    pub fn span(&self, moment: Timestamp) -> Result<PeriodSpan, LimitError> {
        Ok(self.calendar()?.at(moment))
    }
}
