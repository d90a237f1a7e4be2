//! May subject S do X, at cost C, now, and if not, when?
//!
//! Rate limits, quotas, cooldowns and abuse guards are that one question with
//! different windows and stores. This crate holds what they share and does no
//! I/O: the arithmetic, the words, and the contract every store keeps.
//!
//! | module | what it owns |
//! |---|---|
//! | [`algorithm`] | each algorithm as integer arithmetic on (limit, state, cost, now) |
//! | [`limit`], [`cost`], [`key`] | values that cannot be constructed wrong |
//! | [`account`] | one subject's state together with its pending reservations |
//! | [`outcome`], [`decision`] | one limit's answer, and many answers folded into one |
//! | [`batch`], [`stake`], [`store`] | what is asked of a store, and what it promises |
//! | [`breaker`], [`failure`] | decorators: stores that shield and replace other stores |
//! | [`fail_mode`], [`degraded`], [`denials`] | what answers while a store cannot |
//! | [`limiter`] | the verbs a caller uses |
//! | [`clock`], [`timestamp`] | the only places that know what time it is |
//!
//! # Ten lines
//!
//! With `headgate-store-memory` beside this crate:
//!
//! ```
//! use std::time::Duration;
//!
//! use headgate::{Cost, Key, Limit};
//! use headgate_store_memory::MemoryStore;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = MemoryStore::default();
//! let limit = Limit::token_bucket(100, Duration::from_secs(60))?;
//!
//! let outcome = store.acquire(Key::new("user:42")?, &limit, Cost::ONE)?;
//! if outcome.allowed {
//!     println!("go on; {} left", outcome.remaining);
//! } else {
//!     println!("come back in {:?}", outcome.retry_after);
//! }
//! # assert_eq!(outcome.remaining, 99);
//! # Ok(())
//! # }
//! ```

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
