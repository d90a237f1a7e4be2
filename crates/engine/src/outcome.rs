//! The answer of one limit.

mod outcomes;

use std::time::Duration;

use crate::{Cost, Degraded, Grant, Standing, Timestamp, algorithm::Meter};

pub use outcomes::{IntoIter, Outcomes};

/// The answer of one limit to one check.
///
/// Stores create it with [`admission`](Self::admission), [`denial`](Self::denial) or
/// [`Limit::outcome`](crate::Limit::outcome).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// `true` if this limit admits the cost. In a batch, every required limit must admit, or
    /// nothing is taken.
    pub allowed: bool,
    /// Maximum number of units available at once.
    pub limit: u64,
    /// Units left after this decision.
    pub remaining: u64,
    /// Time until all units are available again.
    pub reset_after: Duration,
    /// Time until the same cost is admitted; zero if it was.
    pub retry_after: Duration,
    /// Time of the decision, by the store's clock.
    pub at: Timestamp,
    /// Source and cause of the decision, if the store could not answer.
    pub degraded: Option<Degraded>,
    /// What single verbs answer besides.
    pub(crate) detail: Detail,
    /// `true` if it was decided without asking the store, from units granted before or from an
    /// earlier denial. Then `remaining` counts only the units that this instance holds.
    pub leased: bool,
}

/// What single verbs answer besides. Both in one, because the size of an outcome is part of the cost
/// of every check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    None,
    Grant(Grant),
    Reservation(Standing),
}

impl Outcome {
    /// An admission after which `remaining` of `limit` units are left.
    #[inline]
    pub const fn admission(
        limit: u64,
        remaining: u64,
        reset_after: Duration,
        at: Timestamp,
    ) -> Self {
        let retry_after = Duration::ZERO;
        Self {
            allowed: true,
            limit,
            remaining,
            reset_after,
            retry_after,
            at,
            degraded: None,
            detail: Detail::None,
            leased: false,
        }
    }

    /// A denial that lasts for `retry_after`.
    #[inline]
    pub const fn denial(
        limit: u64,
        remaining: u64,
        reset_after: Duration,
        retry_after: Duration,
        at: Timestamp,
    ) -> Self {
        Self {
            allowed: false,
            limit,
            remaining,
            reset_after,
            retry_after,
            at,
            degraded: None,
            detail: Detail::None,
            leased: false,
        }
    }

    /// The same outcome, decided without asking the store.
    #[must_use]
    pub const fn leased(self) -> Self {
        Self { leased: true, ..self }
    }

    /// Units granted beyond the cost, by [`Verb::Lease`](crate::Verb::Lease).
    pub const fn grant(&self) -> Option<Grant> {
        match self.detail {
            Detail::Grant(grant) => Some(grant),
            Detail::None | Detail::Reservation(_) => None,
        }
    }

    /// The reservation that the verb [names](crate::Verb::reservation), after the decision.
    pub const fn reservation(&self) -> Option<Standing> {
        match self.detail {
            Detail::Reservation(standing) => Some(standing),
            Detail::None | Detail::Grant(_) => None,
        }
    }

    /// The same outcome with a grant, if there is one.
    #[must_use]
    pub const fn with_grant(self, grant: Option<Grant>) -> Self {
        match grant {
            Some(grant) => Self { detail: Detail::Grant(grant), ..self },
            None => self,
        }
    }

    /// The same outcome with the standing of a reservation, if it names one.
    #[must_use]
    pub const fn with_reservation(self, reservation: Option<Standing>) -> Self {
        match reservation {
            Some(standing) => Self { detail: Detail::Reservation(standing), ..self },
            None => self,
        }
    }

    /// The outcome that follows from `state`, which is the subject's state after the decision.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "calls are a fifth of the cost of a decision")]
    pub fn of<M: Meter>(
        meter: &M,
        state: &M::State,
        cost: Cost,
        now: Timestamp,
        allowed: bool,
    ) -> Self {
        let retry_after = if allowed {
            Duration::ZERO
        } else {
            Duration::from_micros(meter.retry_after(state, cost, now))
        };
        Self {
            allowed,
            limit: meter.capacity(),
            remaining: meter.remaining(state, now),
            reset_after: Duration::from_micros(meter.reset_after(state, now)),
            retry_after,
            at: now,
            degraded: None,
            detail: Detail::None,
            leased: false,
        }
    }
}
