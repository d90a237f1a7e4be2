//! The node and its peers: real nodes of iroh on loopback.

mod denied;
mod exchange;
mod limits;
mod others;
mod peer;
mod privacy;
