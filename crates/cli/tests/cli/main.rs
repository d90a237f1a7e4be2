//! The command as people type it: the real binary, a real server.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod check;
mod harness;
mod serve;
mod tour;
