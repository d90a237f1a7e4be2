use headgate::Spent;

use super::ReservationError;
use crate::{ReservationId, reservation::ReservedLimit};

/// What the checks of a reservation cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Costs {
    /// The same for every check.
    Each(u64),
    /// One for each check, in their order.
    PerCheck(Vec<u64>),
}

/// What a use charges to a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Charge {
    /// What was spent since the last use. A repeat is charged again.
    Cost(Costs),
    /// What was spent since the reservation was made, less what was charged before. A repeat charges
    /// nothing.
    Total(Costs),
}

impl Charge {
    pub(super) const fn costs(&self) -> &Costs {
        match self {
            Self::Cost(costs) | Self::Total(costs) => costs,
        }
    }

    pub(super) fn fit(&self, id: &ReservationId) -> Result<(), ReservationError> {
        let field = match self {
            Self::Cost(_) => "cost",
            Self::Total(_) => "total",
        };
        self.costs().fit(id, field)
    }

    /// What it charges to a limit.
    pub(super) fn under(&self, limit: &ReservedLimit, id: &ReservationId) -> Spent {
        let units = self.costs().under(limit, id);
        match self {
            Self::Cost(_) => Spent::with_overdraft(units),
            Self::Total(_) => Spent::in_total(units),
        }
    }
}

impl Costs {
    /// Checks that there is a cost for each check; `field` is the name of the list.
    pub(super) fn fit(
        &self,
        id: &ReservationId,
        field: &'static str,
    ) -> Result<(), ReservationError> {
        match self {
            Self::PerCheck(costs) if costs.len() != id.checks() => {
                Err(ReservationError::Costs { field, checks: id.checks(), costs: costs.len() })
            }
            Self::Each(_) | Self::PerCheck(_) => Ok(()),
        }
    }

    /// The cost of the check at this index.
    pub(super) fn of_check(&self, check: usize) -> u64 {
        match self {
            Self::Each(cost) => *cost,
            Self::PerCheck(costs) => costs.get(check).copied().unwrap_or_default(),
        }
    }

    /// The cost of all checks that count against a limit.
    pub(super) fn under(&self, limit: &ReservedLimit, id: &ReservationId) -> u64 {
        let counting = (0..id.checks()).filter(|check| limit.counts(*check));
        counting.fold(0, |sum: u64, check| sum.saturating_add(self.of_check(check)))
    }
}
