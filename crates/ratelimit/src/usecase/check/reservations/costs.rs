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

impl Costs {
    /// Checks that there is a cost for each check.
    pub(super) fn fit(&self, id: &ReservationId) -> Result<(), ReservationError> {
        match self {
            Self::PerCheck(costs) if costs.len() != id.checks() => {
                Err(ReservationError::Costs { checks: id.checks(), costs: costs.len() })
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
