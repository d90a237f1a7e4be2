//! Who the client is, whatever the headers say.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bounds;
mod client;
mod properties;
mod support;
