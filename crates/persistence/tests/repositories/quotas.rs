//! Quotas: policies, the ledger with its group commit, periods, events, and what fails on the way.

mod clocks;
mod counters;
mod events;
mod house;
mod increments;
mod model;
mod outages;
mod periods;
mod policies;
mod resets;
mod retries;
mod setup;
