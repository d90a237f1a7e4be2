#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | [`limiter`] | [`Limiter`]: check, peek, reserve, refund and reset, on any store |
//! | [`limit`], [`cost`], [`key`] | validated values: a limit, a cost, a subject |
//! | [`batch`], [`stake`] | limits that are decided together |
//! | [`outcome`], [`decision`] | the answer of one limit, and the answers of a batch folded into one |
//! | [`store`] | the [`Store`] trait and its contract |
//! | [`breaker`], [`failure`] | decorators: stores that wrap another store and handle its failures |
//! | [`fail_mode`], [`degraded`], [`denials`] | decisions while a store is away |
//! | [`algorithm`] | each algorithm as integer arithmetic on (limit, state, cost, now) |
//! | [`account`] | the state of one subject together with its pending reservations |
//! | [`clock`], [`timestamp`] | time |

pub mod account;
pub mod algorithm;
pub mod batch;
pub mod breaker;
pub mod clock;
pub mod cost;
pub mod decision;
pub mod degraded;
pub mod denials;
pub mod fail_mode;
pub mod failure;
pub mod key;
pub mod lease;
pub mod limit;
pub mod limiter;
pub mod outcome;
pub mod stake;
pub mod state;
pub mod store;
pub mod timestamp;

pub use account::Account;
pub use algorithm::Algorithm;
pub use batch::{Batch, BatchError, Check, CheckError, OwnedBatch};
pub use breaker::{Breaker, Circuit};
pub use clock::{Clock, ManualClock, SystemClock};
pub use cost::{Cost, CostError};
pub use decision::Decision;
pub use degraded::{Degraded, FailCause, Source};
pub use denials::Denials;
pub use fail_mode::FailMode;
pub use failure::FailurePolicy;
pub use key::{Key, KeyError, OwnedKey, Space};
pub use lease::{Lease, LeaseId};
pub use limit::{Limit, LimitError};
pub use limiter::{Limiter, Reservation};
pub use outcome::{Outcome, Outcomes};
pub use stake::Stake;
pub use state::State;
pub use store::{Store, StoreError, StoreFuture, Verb};
pub use timestamp::Timestamp;
