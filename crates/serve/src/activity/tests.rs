use std::time::Duration;

use tokio::time::{self, Instant};

use super::*;
use crate::{connections::Bounds, watchdog::watch};

const IDLE: Duration = Duration::from_secs(60);

fn connections() -> Arc<Connections> {
    Connections::new(Bounds { max_connections: 10, max_buffered_bytes: 1_000_000 })
}

fn activity() -> Arc<Activity> {
    Arc::new(Activity::new(connections()))
}

/// Returns the time after which the connection is closed, and the reason; `None` if it is not.
async fn ends(activity: &Activity) -> Option<(Duration, EndReason)> {
    let started = Instant::now();
    let reason = time::timeout(10 * IDLE, watch(activity, IDLE)).await.ok()?;
    Some((started.elapsed(), reason))
}

fn within_a_quarter(after: Duration) -> bool {
    (IDLE..=IDLE * 5 / 4).contains(&after)
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_requests_is_idle() {
    let (after, reason) = ends(&activity()).await.unwrap();
    assert!(within_a_quarter(after), "{after:?}");
    assert_eq!(reason, EndReason::Idle);
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_idle_after_its_last_response() {
    let activity = activity();
    let asking = async {
        time::sleep(IDLE / 2).await;
        let asked = activity.start_http1();
        time::sleep(3 * IDLE).await;
        asked.finish();
    };
    let (end, ()) = tokio::join!(ends(&activity), asking);
    let after = end.unwrap().0.checked_sub(7 * IDLE / 2).unwrap();
    assert!(within_a_quarter(after), "{after:?}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_with_an_open_response_is_not_idle() {
    let activity = activity();
    let open = activity.start_http2(0).unwrap().open_response();
    assert_eq!(ends(&activity).await, None);
    drop(open);
    assert_eq!(ends(&activity).await.unwrap().1, EndReason::Idle);
}

/// Returns the first reason to close the connection within ten idle timeouts, and when it appears.
async fn expendable(activity: &Activity) -> Option<(Duration, Expendable)> {
    let started = Instant::now();
    let found = async {
        loop {
            if let Some(reason) = activity.expendable(activity.connections.now()) {
                return (started.elapsed(), reason);
            }
            time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::select! {
        found = time::timeout(10 * IDLE, found) => found.ok(),
        _ = watch(activity, IDLE) => None,
    }
}

#[tokio::test(start_paused = true)]
async fn an_open_response_without_data_becomes_quiet() {
    let activity = activity();
    let _open = activity.start_http2(0).unwrap().open_response();
    let (after, reason) = expendable(&activity).await.unwrap();
    assert!((IDLE..=IDLE * 3 / 2).contains(&after), "{after:?}");
    assert_eq!(reason, Expendable::Quiet);
    // Any data or request ends that at once.
    let now = activity.connections.now();
    drop(activity.send(1).unwrap());
    assert_eq!(activity.expendable(now), None);
    assert_eq!(expendable(&activity).await.unwrap().1, Expendable::Quiet);
    let _other = activity.start_http2(0).unwrap().open_response();
    assert_eq!(activity.expendable(now), None);
}

#[tokio::test(start_paused = true)]
async fn a_stream_with_data_in_either_direction_is_not_quiet() {
    for is_sent in [true, false] {
        let activity = activity();
        let _open = activity.start_http2(0).unwrap().open_response();
        let moving = async {
            loop {
                time::sleep(IDLE / 2).await;
                if is_sent {
                    drop(activity.send(1).unwrap());
                } else {
                    activity.receive(1).unwrap();
                    activity.release(1);
                }
            }
        };
        let found = tokio::select! {
            found = expendable(&activity) => found,
            () = moving => unreachable!("it goes on"),
        };
        assert_eq!(found, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_in_flight_is_not_quiet() {
    let activity = activity();
    let _request = activity.start_http2(0).unwrap();
    assert_eq!(expendable(&activity).await, None);
}

/// Returns the time after which the peer counts as stalled.
async fn stalls(activity: &Activity) -> Duration {
    let (after, reason) = expendable(activity).await.expect("it stalls");
    assert_eq!(reason, Expendable::Stalled);
    after
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waits_for_its_body_stalls_after_two_seconds() {
    let activity = activity();
    let _request = activity.start_http1();
    activity.set_awaiting_body(true);
    assert_eq!(stalls(&activity).await, Duration::from_secs(2));
    // Single bytes are no progress; many are.
    activity.receive(1).unwrap();
    assert_eq!(stalls(&activity).await, Duration::ZERO);
    activity.receive(PROGRESS_BYTES).unwrap();
    assert_eq!(stalls(&activity).await, Duration::from_secs(2));
    // The body is complete: now the server has to go on.
    activity.set_awaiting_body(false);
    assert_eq!(expendable(&activity).await, None);
    activity.set_awaiting_body(true);
    assert_eq!(stalls(&activity).await, Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn a_request_beside_one_that_waits_for_its_body_keeps_the_connection() {
    let activity = activity();
    let _incomplete = activity.start_http2(0).unwrap();
    activity.set_awaiting_body(true);
    let handled = activity.start_http2(0).unwrap();
    assert_eq!(expendable(&activity).await, None);
    handled.finish();
    stalls(&activity).await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_in_both_directions_does_not_stall() {
    let activity = activity();
    let _open = activity.start_http2(0).unwrap().open_response();
    activity.set_awaiting_body(true);
    let (after, reason) = expendable(&activity).await.unwrap();
    assert!(after >= IDLE, "{after:?}");
    assert_eq!(reason, Expendable::Quiet);
}

#[tokio::test(start_paused = true)]
async fn unread_responses_stall_after_two_seconds() {
    let activity = activity();
    let _open = activity.start_http2(0).unwrap().open_response();
    let unsent = activity.send(30_000).unwrap();
    assert_eq!(stalls(&activity).await, Duration::from_secs(2));
    activity.wrote(PROGRESS_BYTES, 0);
    assert_eq!(stalls(&activity).await, Duration::from_secs(2));
    drop(unsent);
    assert_eq!(activity.expendable(activity.connections.now()), None);
    activity.wrote(0, 100);
    assert_eq!(stalls(&activity).await, Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn a_connection_has_time_for_its_first_request() {
    let activity = activity();
    assert_eq!(activity.expendable(activity.connections.now()), Some(Expendable::New));
    time::sleep(Duration::from_secs(1)).await;
    assert_eq!(activity.expendable(activity.connections.now()), Some(Expendable::Idle));
}

#[tokio::test(start_paused = true)]
async fn unsent_bytes_stall_while_others_are_sent() {
    let activity = activity();
    let _stalled = activity.send(100).unwrap();
    let sending = async {
        loop {
            time::sleep(IDLE / 10).await;
            drop(activity.send(100).unwrap());
        }
    };
    let end = tokio::select! {
        end = ends(&activity) => end.unwrap(),
        () = sending => unreachable!("it goes on"),
    };
    assert!(within_a_quarter(end.0), "{end:?}");
    assert_eq!(end.1, EndReason::Stalled);
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_has_not_stalled() {
    let activity = activity();
    let _open = activity.start_http2(0).unwrap().open_response();
    let mut unsent = activity.send(30_000).unwrap();
    let taking = async {
        for _ in 0..6 {
            time::sleep(IDLE / 2).await;
            unsent.take(PROGRESS_BYTES);
        }
    };
    let (end, ()) = tokio::join!(ends(&activity), taking);
    assert!(end.unwrap().0 > 3 * IDLE, "{end:?}");
}

#[tokio::test(start_paused = true)]
async fn a_reader_of_single_bytes_has_stalled() {
    let activity = activity();
    let mut unsent = activity.send(30_000).unwrap();
    let taking = async {
        loop {
            time::sleep(IDLE / 10).await;
            unsent.take(1);
        }
    };
    let end = tokio::select! {
        end = ends(&activity) => end.unwrap(),
        () = taking => unreachable!("it goes on"),
    };
    assert_eq!(end.1, EndReason::Stalled);
}

#[test]
fn buffered_bytes_are_reported_and_released() {
    let connections = connections();
    let activity = Arc::new(Activity::new(Arc::clone(&connections)));
    let small = activity.send(UNREPORTED_BYTES - 1).unwrap();
    assert_eq!(connections.buffered_bytes(), 0, "little is not worth telling");
    let large = activity.send(100_000).unwrap();
    assert_eq!(connections.buffered_bytes(), 100_000 + UNREPORTED_BYTES - 1);
    drop((small, large));
    assert_eq!(connections.buffered_bytes(), 0);
    activity.wrote(10, 50_000);
    assert_eq!(connections.buffered_bytes(), 50_000);
    drop(activity);
    assert_eq!(connections.buffered_bytes(), 0);
}

#[test]
fn a_connection_may_hold_half_of_the_buffers() {
    let activity = activity();
    let _first = activity.send(400_000).unwrap();
    let second = activity.send(200_000);
    assert!(second.is_err());
    assert_eq!(activity.connections.refused(), 1);
}
