//! A publisher with a real broker: delivery, outages and security.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod absence;
mod delivery;
mod fatality;
mod outage;
mod security;
mod support;
