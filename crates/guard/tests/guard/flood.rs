use std::{
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
    time::Duration,
};

use headgate::{ManualClock, Timestamp};
use headgate_guard::{Backend, Guard, Routes};
use headgate_store_memory::MemoryStore;

use crate::support::public;

const CAPACITY: usize = 20_000;
const FLOOD: u64 = 1_000_000;

/// The n-th /64 network.
fn network(n: u64) -> IpAddr {
    Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(n) << 64).into()
}

/// Under a limit per minute, a request refills in half a second and its state is dropped. To fill
/// the store takes capacity / 0.5 s requests a second, 40,000 here; the flood sends a quarter of
/// that.
#[tokio::test]
async fn a_flood_under_limits_per_minute_does_not_fill_the_store() {
    let clock = Arc::new(ManualClock::new(Timestamp::from_micros(1_800_000_000_000_000)));
    let store = MemoryStore::builder().capacity(CAPACITY).clock(Arc::clone(&clock)).build();
    let store = Arc::new(store);
    let backend = Backend::on(Arc::clone(&store) as _).clock(Arc::clone(&clock) as _);
    let guard = Guard::builder(public(120), Routes::all("public")).backend(backend);
    let guard = guard.build().unwrap();
    let honest = "192.0.2.1".parse().unwrap();
    for n in 0..FLOOD {
        clock.advance(Duration::from_micros(100));
        guard.check("public", network(n)).await.expect("there is room for it");
        // Every five seconds: its limit has refilled, so the store has no state of it.
        if n % 50_000 == 0 {
            guard.check("public", honest).await.expect("an honest client is admitted");
        }
    }
    assert!(store.len() <= CAPACITY, "{} slots", store.len());
    // A new client probes a few slots for a free one, not all of them.
    assert!(store.overflowed() < FLOOD / 1_000, "{} had to share", store.overflowed());
}
