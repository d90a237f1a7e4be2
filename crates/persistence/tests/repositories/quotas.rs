//! Quotas: policies, ledger with group commit, periods, events and failures.

mod clocks;
mod counters;
mod events;
mod housekeeping;
mod increments;
mod isolation;
mod max_policies;
mod model;
mod outages;
mod periods;
mod policies;
mod refunds;
mod reservations;
mod resets;
mod retries;
mod setup;
