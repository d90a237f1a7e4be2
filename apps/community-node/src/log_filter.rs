//! What is logged, unless the operator says otherwise.

/// What is logged, unless the operator says otherwise: what the libraries below the gossip say names peers and their
/// addresses, which is nobody's business in a log.
pub const LOG_FILTER: &str = "info,iroh=off,iroh_dns=off,iroh_gossip=off,iroh_relay=off,\
    netwatch=off,noq=off,noq_proto=off,noq_udp=off";
