//! A flood from a million addresses: memory stays bounded, and known clients are not affected.
//!
//! A test binary of its own, because it measures the memory of the whole process.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    alloc::System,
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
    time::Duration,
};

use headgate_guard::{
    Allowance, Backend, Class, Denied, Escalation, Guard, Penalties, Policy, Reason, Rejections,
    Routes, Surface,
};
use headgate_store_memory::MemoryStore;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const CAPACITY: usize = 20_000;
const OVERFLOW_BYTES: usize = 64 << 20;
const FLOOD: u64 = 1_000_000;

/// New clients after the flood.
const NEWCOMERS: u64 = 1_000;

/// The n-th /64 network.
fn network(n: u64) -> IpAddr {
    Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(n) << 64 | u128::from(n * 7)).into()
}

async fn take(guard: &Guard, address: IpAddr) -> Result<(), Denied> {
    let taken = guard.check("public", address).await;
    taken.map(|_| ()).map_err(|error| *error.denied().expect("a class of the policy"))
}

async fn survives(escalation: Option<Escalation>) {
    let store = MemoryStore::builder().capacity(CAPACITY).overflow_bytes(OVERFLOW_BYTES);
    let store = Arc::new(store.build());
    let rejections = Arc::new(Rejections::default());
    let backend = Backend::in_memory(Arc::clone(&store)).observer(Arc::clone(&rejections) as _);
    // Per day, so that nothing refills during the test.
    let ten = Allowance::per(10, Duration::from_secs(86_400)).unwrap();
    let class = Class::new("public").unwrap().by_address(ten);
    let mut policy = Policy::new([class]).unwrap();
    if let Some(escalation) = escalation {
        policy = policy.escalation(escalation);
    }
    let guard = Guard::builder(policy, Routes::all("public")).backend(backend).build().unwrap();

    let [honest, blocked] =
        ["192.0.2.1", "2001:db8:ffff:ffff::1"].map(|text| text.parse().unwrap());
    for _ in 0..3 {
        take(&guard, honest).await.unwrap();
    }
    while take(&guard, blocked).await.is_ok() {}

    let region = Region::new(ALLOCATOR);
    for n in 0..FLOOD {
        let _ = take(&guard, network(n)).await;
    }
    let change = region.change();
    let grown = change.bytes_allocated as i64 - change.bytes_deallocated as i64;
    // 24 bytes a slot and spare room; 24 bytes an offender and spare room; the overflow sketch of
    // one limit.
    let bound =
        CAPACITY * 64 + escalation.map_or(0, |_| Penalties::CAPACITY * 80) + OVERFLOW_BYTES / 8;
    assert!(grown < bound as i64, "{grown} bytes more than before, at most {bound}");
    assert!(store.len() <= CAPACITY + CAPACITY / 10, "{} slots", store.len());
    assert!(store.overflowed() > FLOOD / 2, "{}", store.overflowed());

    // x = 1,000,000 / (10 * 262,144) = 0.38: 1 % of new clients at most.
    let rejected = rejections.at(Surface::Http);
    let mut denied = 0;
    for n in FLOOD..FLOOD + NEWCOMERS {
        denied += u64::from(take(&guard, network(n)).await.is_err());
    }
    assert!(denied < NEWCOMERS / 50, "{denied} newcomers are locked out, {rejected} of the flood");
    for _ in 0..7 {
        take(&guard, honest).await.expect("an honest client keeps its own budget");
    }
    assert_eq!(take(&guard, honest).await.unwrap_err().reason, Reason::Address);
    take(&guard, blocked).await.expect_err("a blocked one stays blocked");
}

#[tokio::test]
async fn a_flood_of_a_million_networks_does_not_affect_known_clients() {
    survives(None).await;
    let hour = Duration::from_secs(3600);
    survives(Some(Escalation::new(hour, 8 * hour, hour).unwrap())).await;
}
