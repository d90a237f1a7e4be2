//! What single verbs need to know of a check.

use std::time::Duration;

use super::Check;
use crate::{Cost, Extra, LeaseId, Timestamp};

/// What a verb needs to know of a check besides its cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Terms {
    None,
    /// For [`Verb::Lease`](crate::Verb::Lease).
    Extra(Extra),
    /// For [`Verb::GiveBack`](crate::Verb::GiveBack).
    Until(Timestamp),
    /// For [`Verb::Refund`](crate::Verb::Refund).
    TakenAt(Timestamp),
    /// For [`Verb::Commit`](crate::Verb::Commit) and [`Verb::Use`](crate::Verb::Use).
    Spent(Spent),
    /// For [`Verb::Acquire`](crate::Verb::Acquire) of a concurrency limit.
    Place(Place),
    /// For every verb: see [`Check::exact`].
    Exact,
}

/// The lease under which places of a concurrency limit are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Identifies the lease in [`Verb::Use`](crate::Verb::Use), which renews it, and in
    /// [`Verb::Cancel`](crate::Verb::Cancel), which releases it.
    pub id: LeaseId,
    /// Time until it ends; a longer one than the limit's longest lease counts as that.
    pub lease: Duration,
}

/// The units of a reservation that were spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent {
    /// Number of units: zero, or more than was reserved; at most [`Cost::MAX`](crate::Cost::MAX).
    pub(crate) units: u64,
    /// Whether units that are missing are taken even if the limit has none left.
    pub(crate) overdraft: bool,
    /// Whether units that were charged before are among them.
    pub(crate) total: bool,
}

impl Check<'_> {
    /// Sets the units that [`Verb::Lease`](crate::Verb::Lease) takes beyond the cost, if they are
    /// available; none by default.
    #[must_use]
    pub const fn with_extra(self, extra: Extra) -> Self {
        Self { terms: Terms::Extra(extra), ..self }
    }

    /// The same check with this extra, if there is one.
    #[must_use]
    pub const fn with_optional_extra(self, extra: Option<Extra>) -> Self {
        match extra {
            Some(extra) => self.with_extra(extra),
            None => self,
        }
    }

    /// The same check, which takes nothing in advance.
    #[must_use]
    pub const fn without_extra(self) -> Self {
        match self.terms {
            Terms::Extra(_) => Self { terms: Terms::None, ..self },
            _ => self,
        }
    }

    /// Sets the end of the grant from which [`Verb::GiveBack`](crate::Verb::GiveBack) returns the
    /// cost.
    #[must_use]
    pub const fn from_grant_until(self, until: Timestamp) -> Self {
        Self { terms: Terms::Until(until), ..self }
    }

    /// Sets the time at which the units were taken that [`Verb::Refund`](crate::Verb::Refund)
    /// returns: [`Outcome::at`](crate::Outcome::at) of the check that took them.
    #[must_use]
    pub const fn taken_at(self, at: Timestamp) -> Self {
        Self { terms: Terms::TakenAt(at), ..self }
    }

    /// Sets the units that [`Verb::Commit`](crate::Verb::Commit) or
    /// [`Verb::Use`](crate::Verb::Use) charges; without, all that are reserved, or the cost.
    #[must_use]
    pub const fn spent(self, spent: Spent) -> Self {
        Self { terms: Terms::Spent(spent), ..self }
    }

    /// Sets the lease under which [`Verb::Acquire`](crate::Verb::Acquire) takes places of a
    /// concurrency limit. Without one they cannot be released: they are held for the longest lease.
    ///
    /// Repeating an acquisition with the same id renews the lease, and takes nothing.
    #[must_use]
    pub const fn holding(self, place: Place) -> Self {
        Self { terms: Terms::Place(place), ..self }
    }

    /// The same check, decided by a state of its own only: what it answers is a fact about this
    /// subject.
    ///
    /// A store that has no room for more states may count new subjects together. It denies an exact
    /// check instead, although units are left: such a denial has at least its cost `remaining`.
    #[must_use]
    pub const fn exact(self) -> Self {
        Self { terms: Terms::Exact, ..self }
    }

    /// Returns `true` if only a state of its own decides it.
    pub const fn is_exact(&self) -> bool {
        matches!(self.terms, Terms::Exact)
    }

    /// The lease under which places of a concurrency limit are taken.
    pub const fn place(&self) -> Option<Place> {
        match self.terms {
            Terms::Place(place) => Some(place),
            _ => None,
        }
    }

    /// The units that [`Verb::Lease`](crate::Verb::Lease) takes beyond the cost.
    pub const fn extra(&self) -> Option<Extra> {
        match self.terms {
            Terms::Extra(extra) => Some(extra),
            _ => None,
        }
    }

    /// The end of the grant from which [`Verb::GiveBack`](crate::Verb::GiveBack) returns the cost.
    pub const fn grant_until(&self) -> Option<Timestamp> {
        match self.terms {
            Terms::Until(until) => Some(until),
            _ => None,
        }
    }

    /// The time at which the units were taken that [`Verb::Refund`](crate::Verb::Refund) returns.
    pub const fn was_taken_at(&self) -> Option<Timestamp> {
        match self.terms {
            Terms::TakenAt(at) => Some(at),
            _ => None,
        }
    }

    /// The units that [`Verb::Commit`](crate::Verb::Commit) or [`Verb::Use`](crate::Verb::Use)
    /// charges.
    pub const fn was_spent(&self) -> Option<Spent> {
        match self.terms {
            Terms::Spent(spent) => Some(spent),
            _ => None,
        }
    }
}

impl Spent {
    /// Units of which only those are charged that the limit has left.
    pub const fn within_the_limit(units: u64) -> Self {
        Self { units: bounded(units), overdraft: false, total: false }
    }

    /// Units that are charged even if the limit has none left.
    pub const fn with_overdraft(units: u64) -> Self {
        Self { units: bounded(units), overdraft: true, total: false }
    }

    /// Units that were spent since the reservation was made, charged even if the limit has none
    /// left. [`Verb::Use`](crate::Verb::Use) charges those that it has not charged before, so that
    /// it can be repeated. A settlement is for a total in any case.
    pub const fn in_total(units: u64) -> Self {
        Self { units: bounded(units), overdraft: true, total: true }
    }

    /// Number of units.
    pub const fn units(self) -> u64 {
        self.units
    }

    /// Returns `true` if they are charged even if the limit has none left.
    pub const fn is_overdraft(self) -> bool {
        self.overdraft
    }

    /// Returns `true` if units that were charged before are among them.
    pub const fn is_total(self) -> bool {
        self.total
    }

    /// The units that a use charges to a reservation of which `used` were used before.
    pub(crate) const fn charged_after(self, used: u64) -> u64 {
        if self.total { self.units.saturating_sub(used) } else { self.units }
    }
}

const fn bounded(units: u64) -> u64 {
    if units > Cost::MAX { Cost::MAX } else { units }
}
