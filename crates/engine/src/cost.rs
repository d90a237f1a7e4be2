//! What one request takes from a limit.

use std::{fmt, num::NonZeroU64};

use thiserror::Error;

/// How many units a request takes: at least 1, at most 2^53.
///
/// ```
/// use headgate::{Cost, CostError};
///
/// assert_eq!(Cost::new(1), Ok(Cost::ONE));
/// assert_eq!(Cost::new(0), Err(CostError::Zero));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost(NonZeroU64);

/// Why a number is no cost.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum CostError {
    /// Nothing can be taken.
    #[error("cost must be at least 1")]
    Zero,
    /// Beyond what every store and JSON can count exactly.
    #[error("cost must be at most {}", Cost::MAX)]
    TooLarge,
}

impl Cost {
    /// One unit.
    pub const ONE: Self = Self(NonZeroU64::MIN);

    /// The largest cost: the largest number that doubles (Lua, JSON) count exactly.
    pub const MAX: u64 = 1 << 53;

    /// A cost of `units`.
    pub const fn new(units: u64) -> Result<Self, CostError> {
        match NonZeroU64::new(units) {
            None => Err(CostError::Zero),
            Some(_) if units > Self::MAX => Err(CostError::TooLarge),
            Some(units) => Ok(Self(units)),
        }
    }

    /// The number of units.
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
