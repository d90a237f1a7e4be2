//! The relay as its clients see it: by a Nostr client library, and by frames that no library sends.

mod auth;
mod bounds;
mod clients;
mod connections;
pub(crate) mod denied;
mod fragments;
pub(crate) mod harness;
mod information;
mod kinds;
mod limits;
mod live;
mod numbers;
mod overload;
mod slow;
pub(crate) mod wire;
