//! The conformance suite and the golden vectors that every store passes.
//!
//! The tests of a store implement [`Fixture`] and call the functions of [`suite`]. The reference is
//! the engine's own [`Account`](headgate::Account), kept in a map by [`Model`]: a store must give
//! the same answers as the model.
//!
//! If the clock of a store can be set, the suite moves it. Other stores run in real time, which
//! they report in every answer, and the model follows.

#![allow(clippy::missing_panics_doc, reason = "these functions are assertions")]

mod fixture;
pub mod golden;
mod model;
mod scenario;
pub mod suite;

pub use fixture::Fixture;
pub use model::Model;
