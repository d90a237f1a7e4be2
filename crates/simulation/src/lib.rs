//! Fleets of instances that lease from one store, under virtual time (tests and figures only).
//!
//! The decorator and the arithmetic are the real ones; time, the network between them and the
//! traffic are simulated. A run depends on its [`Scenario`] alone, so that every figure in
//! `docs/scale.md` can be computed again.
//!
//! | module | contents |
//! |---|---|
//! | `scenario` | [`Scenario`]: the fleet, its traffic and what goes wrong |
//! | `fleet` | [`run`]: the instances, and the order of events |
//! | `network` | the way to the store and back: latency, loss, partitions |
//! | `books` | what the store and the instances admitted, against the limit itself |
//! | `report` | [`Report`]: what a run has shown |
//! | `executor`, `virtual_time` | tasks and timers without a real clock |
//! | `random`, `zipf` | the traffic |

mod books;
mod executor;
mod fleet;
mod network;
mod random;
mod report;
mod scenario;
mod virtual_time;
mod zipf;

pub use self::{
    fleet::run,
    report::Report,
    scenario::{Faults, Lease, Scenario},
};
