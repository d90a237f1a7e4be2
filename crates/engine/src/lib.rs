#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | [`rate_limiter`] | [`RateLimiter`]: limits checked by key, on any store |
//! | [`batch_limiter`] | [`BatchLimiter`]: checks, reservations, refunds and resets, on any store |
//! | [`limit`], [`cost`], [`key`] | validated values: a limit, a cost, a subject |
//! | [`batch`], [`check_mode`] | limits that are decided together |
//! | [`outcome`], [`decision`] | the answer of one limit, and the answers of a batch folded into one |
//! | [`store`] | the [`Store`] trait and its guarantees |
//! | [`breaker`], [`failure`] | decorators: stores that wrap another store and handle its failures |
//! | [`fail_mode`], [`degraded`], [`denial_cache`] | decisions during an outage of the store |
//! | [`outage_log`] | throttled warnings about an outage |
//! | [`algorithm`] | each algorithm as integer arithmetic on (limit, state, cost, now) |
//! | [`account`], [`state`], [`lease`], [`grant`] | the state of one subject, with its pending reservations and grants |
//! | [`lease_policy`] | how much of a limit is granted in advance, and for how long |
//! | [`clock`], [`timestamp`] | time |

pub mod account;
pub mod algorithm;
pub mod batch;
pub mod batch_limiter;
pub mod breaker;
pub mod check_mode;
pub mod clock;
pub mod cost;
pub mod decision;
pub mod degraded;
pub mod denial_cache;
pub mod fail_mode;
pub mod failure;
pub mod grant;
pub mod key;
pub mod lease;
pub mod lease_policy;
pub mod limit;
pub mod outage_log;
pub mod outcome;
pub mod rate_limiter;
pub mod state;
pub mod store;
pub mod timestamp;

pub use account::Account;
pub use algorithm::Algorithm;
pub use batch::{Batch, BatchError, Check, InvalidCheck, OwnedBatch, Place, Spent};
pub use batch_limiter::{
    BatchLimiter, Permit, Reservation, ReserveError, SettleError, Settlement, Usage,
};
pub use breaker::{Breaker, Circuit};
pub use check_mode::CheckMode;
pub use clock::{Clock, ManualClock, SystemClock};
pub use cost::{Cost, CostError};
pub use decision::Decision;
pub use degraded::{Degraded, FailCause, Source};
pub use denial_cache::DenialCache;
pub use fail_mode::FailMode;
pub use failure::{FailurePolicy, Replicas};
pub use grant::{Extra, Grant};
pub use key::{Key, KeyError, KeySpace, OwnedKey};
pub use lease::{Lease, LeaseId, Settled, Standing};
pub use lease_policy::{LeasePolicy, LeasePolicyError};
pub use limit::{Limit, LimitError};
pub use outage_log::OutageLog;
pub use outcome::{Outcome, Outcomes};
pub use rate_limiter::{RateLimiter, RateLimiterError};
pub use state::State;
pub use store::{Holders, HoldersFuture, Store, StoreError, StoreFuture, SyncStore, Verb};
pub use timestamp::Timestamp;
