//! Overhead of a layer per request: ours against `tower_governor`, both by the address of the peer.

mod overhead;
pub(crate) mod services;
mod throughput;

use crate::options::Options;

pub(crate) use self::services::{Entrant, Layers};

pub(crate) fn report(options: Options) {
    println!("## Layers: what they add to a request\n");
    overhead::report(options);
    if let Err(reason) = throughput::report(options) {
        println!("skipped the throughput of layers: {reason}\n");
    }
}
