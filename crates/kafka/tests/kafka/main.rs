//! A publisher and a real broker: what arrives, what happens without one, and who is let in.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod absence;
mod delivery;
mod fatality;
mod outage;
mod security;
mod support;
