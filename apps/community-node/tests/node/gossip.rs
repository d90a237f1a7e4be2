//! The node and its peers: real nodes of iroh on loopback.

mod exchange;
mod limits;
mod peer;
mod privacy;
