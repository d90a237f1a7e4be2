//! Counts the allocations of a thousand requests of a known client: without a layer, behind ours,
//! and behind that of `tower_governor`.

#![expect(clippy::print_stdout, reason = "the counts are the product")]

use std::{alloc::System, net::IpAddr};

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[path = "../guard/services.rs"]
#[allow(dead_code, reason = "the bench itself uses the rest")]
mod services;

use crate::services::{Entrant, Layers};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() {
    let client = [IpAddr::from([192, 0, 2, 1])];
    let layers = Layers::new();
    for entrant in Entrant::ALL {
        entrant.send(&client, 10, &layers);
        let region = Region::new(ALLOCATOR);
        entrant.send(&client, 1_000, &layers);
        println!("{} {}", entrant.name(), region.change().allocations);
    }
}
