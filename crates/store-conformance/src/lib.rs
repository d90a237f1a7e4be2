//! One suite and one set of golden vectors that every store passes.
//!
//! A store's tests make a [`Fixture`] and call the functions of [`suite`]. The
//! reference is the engine's own [`Account`](headgate::Account), kept in a map by
//! [`Model`]: whatever a store answers, the model must have answered the same.
//!
//! Stores whose clock can be set are driven through time; others run on their
//! own time, which they tell in every answer, and the model follows.

#![allow(
    clippy::missing_panics_doc,
    reason = "a panic is how a test fails: it is what these functions are for"
)]

mod fixture;
pub mod golden;
mod model;
mod scenario;
pub mod suite;

pub use fixture::Fixture;
pub use model::Model;
