//! Limits without rules: callers name an algorithm and a key.

pub mod algorithm;
pub mod limits;

pub use algorithm::{KeyedAlgorithm, PerAlgorithm, UnknownKeyedAlgorithm};
pub use limits::{KeyedLimit, KeyedLimits};
