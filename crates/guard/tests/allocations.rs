//! Finding the client's address does not allocate.
//!
//! A test binary of its own, because it counts allocations of the whole process.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{alloc::System, hint::black_box};

use headgate_guard::{AddressKey, Cidr, ForwardedBy, TrustedProxies};
use http::HeaderMap;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[test]
fn finding_the_client_does_not_allocate() {
    let range: Cidr = "10.0.0.0/8".parse().unwrap();
    let peer = "10.0.0.1".parse().unwrap();
    let mut headers = HeaderMap::new();
    headers.append("x-forwarded-for", "203.0.113.9, 2001:db8::1".parse().unwrap());
    headers.append("x-forwarded-for", "10.0.0.3:80, 10.0.0.2".parse().unwrap());
    headers.append("forwarded", r#"for="[2001:db8::1]:80";by=x, for=10.0.0.2"#.parse().unwrap());
    headers.append("x-real-ip", "2001:db8::1".parse().unwrap());

    for header in [ForwardedBy::XForwardedFor, ForwardedBy::Forwarded, ForwardedBy::XRealIp] {
        let proxies = TrustedProxies::from_iter([range]).forwarded_by(header);
        let answer = || {
            let region = Region::new(ALLOCATOR);
            let key = AddressKey::with_prefix("ip:", proxies.client(black_box(peer), &headers));
            assert_eq!(&*key, "ip:2001:db8::/64", "{header:?}");
            region.change().allocations
        };
        // The test harness may allocate during some of the calls, but not during all.
        assert_eq!((0..100).map(|_| answer()).min(), Some(0), "{header:?}");
    }
}
