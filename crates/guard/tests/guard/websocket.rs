use std::{sync::Arc, time::Duration};

use headgate_guard::{
    Allowance, Backend, InFlightLimits, MessageKind, Reason, Rejections, Subject, Surface,
    WebSocketConnection, WebSocketGuard, WebSocketLimits,
};

use crate::support::by_clock;

fn per_minute(count: u64) -> Allowance {
    Allowance::per_minute(count).unwrap()
}

fn limits() -> WebSocketLimits {
    WebSocketLimits::new(InFlightLimits::new(3, 5))
        .connections(per_minute(30))
        .message(MessageKind::Event, per_minute(3))
        .message_by_subject(MessageKind::Event, per_minute(2))
        .message(MessageKind::Req, per_minute(2))
        .message(MessageKind::Backfill, per_minute(1))
        .message(MessageKind::Invalid, per_minute(1))
}

fn guard() -> WebSocketGuard {
    WebSocketGuard::new(limits(), by_clock().1)
}

async fn connect(guard: &WebSocketGuard, address: &str) -> WebSocketConnection {
    guard.connect(address.parse().unwrap()).await.unwrap()
}

async fn admitted(connection: &WebSocketConnection, kinds: &[MessageKind], times: u32) -> u32 {
    let mut admitted = 0;
    for _ in 0..times {
        admitted += u32::from(connection.messages(kinds).await.is_ok());
    }
    admitted
}

#[tokio::test]
async fn connections_are_limited_by_rate() {
    let (clock, backend) = by_clock();
    let guard = WebSocketGuard::new(limits().connections(per_minute(2)), backend);
    for _ in 0..2 {
        drop(connect(&guard, "192.0.2.1").await);
    }
    let denied = guard.connect("192.0.2.1".parse().unwrap()).await.unwrap_err();
    assert_eq!((denied.surface, denied.reason), (Surface::Connection, Reason::Address));
    assert_eq!(denied.retry_after, Duration::from_secs(30));
    drop(connect(&guard, "192.0.2.2").await);
    assert_eq!(guard.open(), 0, "a denied connection takes no slot");
    clock.advance(denied.retry_after);
    drop(connect(&guard, "192.0.2.1").await);
}

#[tokio::test]
async fn open_connections_are_limited_and_released_on_drop() {
    let guard = guard();
    let mut open = Vec::new();
    for _ in 0..3 {
        open.push(connect(&guard, "192.0.2.1").await);
    }
    let denied = guard.connect("192.0.2.1".parse().unwrap()).await.unwrap_err();
    assert_eq!(denied.reason, Reason::InFlight);
    for _ in 0..2 {
        open.push(connect(&guard, "192.0.2.2").await);
    }
    let denied = guard.connect("192.0.2.3".parse().unwrap()).await.unwrap_err();
    assert_eq!(denied.reason, Reason::Capacity);

    // A task that ends drops its connection.
    let connection = open.pop().unwrap();
    let task = tokio::spawn(async move {
        let _connection = connection;
        std::future::pending::<()>().await;
    });
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    drop(connect(&guard, "192.0.2.3").await);
    drop(open);
    assert_eq!(guard.open(), 0);
}

#[tokio::test]
async fn kinds_of_messages_are_counted_separately() {
    for (first, second) in [
        ((MessageKind::Event, 3), (MessageKind::Req, 2)),
        ((MessageKind::Req, 2), (MessageKind::Event, 3)),
    ] {
        let guard = guard();
        let connection = connect(&guard, "192.0.2.1").await;
        assert_eq!(admitted(&connection, &[first.0], 50).await, first.1);
        assert_eq!(admitted(&connection, &[second.0], 50).await, second.1);
    }
}

#[tokio::test]
async fn an_address_has_one_allowance_over_all_its_connections() {
    let guard = guard();
    let first = connect(&guard, "2001:db8::1").await;
    let second = connect(&guard, "2001:db8::2").await;
    assert_eq!(admitted(&first, &[MessageKind::Event], 2).await, 2);
    assert_eq!(admitted(&second, &[MessageKind::Event], 9).await, 1);
}

#[tokio::test]
async fn after_authentication_subject_and_address_must_both_admit() {
    let guard = guard();
    let mut here = connect(&guard, "192.0.2.1").await;
    here.authenticate(Subject::new("alice").unwrap());
    assert_eq!(admitted(&here, &[MessageKind::Event], 9).await, 2);
    let denied = here.message(MessageKind::Event).await.unwrap_err();
    assert_eq!((denied.surface, denied.reason), (Surface::Message, Reason::Subject));

    // The denials did not count against the address: bob takes its last unit.
    let mut beside = connect(&guard, "192.0.2.1").await;
    beside.authenticate(Subject::new("bob").unwrap());
    assert_eq!(admitted(&beside, &[MessageKind::Event], 9).await, 1);
    let denied = beside.message(MessageKind::Event).await.unwrap_err();
    assert_eq!(denied.reason, Reason::Address);

    // Nor did these count against bob, who has one left from another address; alice has none.
    let mut elsewhere = connect(&guard, "192.0.2.2").await;
    elsewhere.authenticate(Subject::new("bob").unwrap());
    assert_eq!(admitted(&elsewhere, &[MessageKind::Event], 9).await, 1);
    elsewhere.authenticate(Subject::new("alice").unwrap());
    assert_eq!(admitted(&elsewhere, &[MessageKind::Event], 9).await, 0);
}

#[tokio::test]
async fn a_denied_backfill_counts_against_no_limit() {
    let guard = guard();
    let connection = connect(&guard, "192.0.2.1").await;
    let backfill = [MessageKind::Req, MessageKind::Backfill];
    assert_eq!(admitted(&connection, &backfill, 9).await, 1);
    assert_eq!(admitted(&connection, &[MessageKind::Req], 9).await, 1);
    // A duplicate kind counts once.
    let guard = self::guard();
    let connection = connect(&guard, "192.0.2.1").await;
    assert_eq!(admitted(&connection, &[MessageKind::Req, MessageKind::Req], 9).await, 2);
}

#[tokio::test]
async fn invalid_messages_are_limited() {
    let rejections = Arc::new(Rejections::default());
    let backend = by_clock().1.observer(Arc::clone(&rejections) as _);
    let guard = WebSocketGuard::new(limits(), backend);
    let connection = connect(&guard, "192.0.2.1").await;
    assert_eq!(admitted(&connection, &[MessageKind::Invalid], 4).await, 1);
    assert_eq!(rejections.count(Surface::Message, Reason::Address), 3);
    assert_eq!(admitted(&connection, &[MessageKind::Other], 99).await, 99);
}

#[tokio::test]
async fn replaced_limits_apply_to_open_connections() {
    let guard = WebSocketGuard::new(limits(), Backend::memory());
    let connection = connect(&guard, "192.0.2.1").await;
    assert_eq!(admitted(&connection, &[MessageKind::Req], 9).await, 2);
    guard.replace(limits().message(MessageKind::Req, per_minute(5)));
    assert_eq!(admitted(&connection, &[MessageKind::Req], 9).await, 3);
    guard.replace(limits().message(MessageKind::Req, per_minute(0)));
    let denied = connection.message(MessageKind::Req).await.unwrap_err();
    assert_eq!(denied.retry_after, Duration::from_secs(60));
    guard.replace(limits().enabled(false));
    assert_eq!(admitted(&connection, &[MessageKind::Req], 9).await, 9);
}

#[tokio::test]
async fn the_total_of_connections_is_bounded_while_disabled() {
    let limits = WebSocketLimits::new(InFlightLimits::new(1, 2)).enabled(false);
    let guard = WebSocketGuard::new(limits, Backend::memory());
    let address = "192.0.2.1".parse().unwrap();
    let first = guard.connect(address).await.unwrap();
    let _second = guard.connect(address).await.unwrap();
    assert_eq!(guard.connect(address).await.unwrap_err().reason, Reason::Capacity);
    drop(first);
    let _third = guard.connect(address).await.unwrap();
}
