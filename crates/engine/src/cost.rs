//! The units that a request takes.

use std::{fmt, num::NonZeroU64};

use thiserror::Error;

/// The number of units that a request takes: at least 1, at most 2^53.
///
/// ```
/// use headgate::{Cost, CostError};
///
/// assert_eq!(Cost::new(1), Ok(Cost::ONE));
/// assert_eq!(Cost::new(0), Err(CostError::Zero));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost(NonZeroU64);

/// Error for an invalid cost.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum CostError {
    /// The cost is zero.
    #[error("cost must be at least 1")]
    Zero,
    /// The cost is larger than every store and JSON can represent exactly.
    #[error("cost must be at most {}", Cost::MAX)]
    TooLarge,
}

impl Cost {
    /// One unit.
    pub const ONE: Self = Self(NonZeroU64::MIN);

    /// The largest cost: up to here, doubles (Lua, JSON) represent every integer.
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
