use std::fmt;

use serde::Deserialize;

use crate::problem::quoted;

/// A whole number from `MIN` to `MAX`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct Bounded<const MIN: u64, const MAX: u64>(u64);

impl<const MIN: u64, const MAX: u64> Bounded<MIN, MAX> {
    /// Creates the number `N`; one out of range does not compile.
    pub const fn of<const N: u64>() -> Self {
        const { assert!(MIN <= N && N <= MAX, "number out of range") };
        Self(N)
    }

    /// Returns the number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl<const MIN: u64, const MAX: u64> TryFrom<String> for Bounded<MIN, MAX> {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let number = text.parse().ok().filter(|number| (MIN..=MAX).contains(number));
        number.map(Self).ok_or_else(|| {
            format!("expected a whole number from {MIN} to {MAX}, got {}", quoted(&text))
        })
    }
}

impl From<u32> for Bounded<0, { u32::MAX as u64 }> {
    fn from(number: u32) -> Self {
        Self(number.into())
    }
}

impl<const MIN: u64, const MAX: u64> fmt::Display for Bounded<MIN, MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
