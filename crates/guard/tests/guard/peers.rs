use std::{sync::Arc, time::Duration};

use headgate_guard::{
    Allowance, Escalation, PeerGuard, PeerId, PeerLimits, Reason, Rejections, Surface,
};

use crate::support::by_clock;

fn limits(per_peer: u64, global: u64) -> PeerLimits {
    let per_minute = |count| Allowance::per_minute(count).unwrap();
    PeerLimits::new(per_minute(per_peer), per_minute(global))
}

async fn admitted(guard: &PeerGuard, peer: PeerId<'_>, times: u32) -> u32 {
    let mut admitted = 0;
    for _ in 0..times {
        admitted += u32::from(guard.admit(peer).await.is_ok());
    }
    admitted
}

#[tokio::test]
async fn a_message_counts_against_its_peer_and_all_or_neither() {
    let rejections = Arc::new(Rejections::default());
    let guard = PeerGuard::new(limits(2, 5), by_clock().1.observer(Arc::clone(&rejections) as _));
    // A flooding peer uses only its own share of the global limit.
    assert_eq!(admitted(&guard, PeerId::Node("flooder"), 100).await, 2);
    assert_eq!(admitted(&guard, PeerId::Node("b"), 9).await, 2);
    assert_eq!(admitted(&guard, PeerId::Address("192.0.2.1".parse().unwrap()), 9).await, 1);
    let denied = guard.admit(PeerId::Node("c")).await.unwrap_err();
    assert_eq!((denied.surface, denied.reason), (Surface::Peer, Reason::Global));
    assert_eq!(rejections.count(Surface::Peer, Reason::Peer), 98 + 7);
    assert_eq!(rejections.count(Surface::Peer, Reason::Global), 8 + 1);
}

#[tokio::test]
async fn the_global_limit_penalises_no_peer() {
    let (clock, backend) = by_clock();
    let hour = Duration::from_secs(3600);
    let escalation = Some(Escalation::new(hour, hour, hour).unwrap());
    let guard = PeerGuard::new(PeerLimits { escalation, ..limits(2, 1) }, backend);
    assert_eq!(admitted(&guard, PeerId::Node("a"), 1).await, 1);
    assert_eq!(admitted(&guard, PeerId::Node("b"), 9).await, 0);
    clock.advance(Duration::from_secs(60));
    assert_eq!(admitted(&guard, PeerId::Node("b"), 1).await, 1);
}

#[tokio::test]
async fn peer_limits_can_be_replaced_and_disabled() {
    let guard = PeerGuard::new(limits(1, 9), by_clock().1);
    assert_eq!(admitted(&guard, PeerId::Node("a"), 9).await, 1);
    guard.replace(limits(3, 9));
    assert_eq!(admitted(&guard, PeerId::Node("a"), 9).await, 2);
    guard.replace(PeerLimits { enabled: false, ..limits(0, 0) });
    assert_eq!(admitted(&guard, PeerId::Node("a"), 9).await, 9);
    guard.replace(limits(0, 9));
    assert_eq!(admitted(&guard, PeerId::Node("a"), 9).await, 0);
    assert!(guard.admit(PeerId::Node("\n")).await.is_err(), "an id that cannot be counted");
}
