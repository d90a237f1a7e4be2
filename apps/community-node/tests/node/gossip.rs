//! The node and its peers: real nodes of iroh on loopback.

mod denied;
mod exchange;
mod limits;
mod peer;
mod privacy;
