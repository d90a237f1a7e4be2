use super::*;

#[tokio::test]
async fn an_idle_connection_behind_many_busy_ones_makes_room() {
    let max_connections = 3 * MAX_SCAN;
    let connections = Connections::new(Bounds { max_connections, max_buffered_bytes: 1 << 20 });
    let mut busy = Vec::new();
    for _ in 1..max_connections {
        let activity = Arc::new(Activity::new(Arc::clone(&connections)));
        let slot = connections.slot(&activity).await;
        busy.push((activity.start_http1(), slot));
    }
    let idle = Arc::new(Activity::new(Arc::clone(&connections)));
    let slot = connections.slot(&idle).await;
    let closed = tokio::spawn(async move {
        let reason = idle.ended().await;
        drop(slot);
        reason
    });

    let new = Arc::new(Activity::new(Arc::clone(&connections)));
    let slot = time::timeout(Duration::from_secs(60), connections.slot(&new));
    let _slot = slot.await.expect("a slot");
    assert_eq!(closed.await.unwrap(), EndReason::Crowded);
    assert_eq!(connections.open(), max_connections);
}

/// A connection with a slot, and its response that never ends.
struct Streaming {
    activity: Arc<Activity>,
    _open: Option<crate::activity::OpenResponse>,
    _slot: ConnectionSlot,
}

async fn quiet_streams(connections: &Arc<Connections>, count: usize) -> Vec<Streaming> {
    let mut streams = Vec::new();
    for _ in 0..count {
        let activity = Arc::new(Activity::new(Arc::clone(connections)));
        let slot = connections.slot(&activity).await;
        let open = activity.start_http2(0).unwrap().open_response();
        activity.set_quiet(true);
        streams.push(Streaming { activity, _open: open, _slot: slot });
    }
    streams
}

fn ending(streams: &[Streaming]) -> usize {
    streams.iter().filter(|one| one.activity.is_ending()).count()
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_makes_room_before_a_quiet_one() {
    let max_connections = 2 * MAX_SCAN;
    let connections = Connections::new(Bounds { max_connections, max_buffered_bytes: 1 << 20 });
    // The idle one comes last.
    let streams = quiet_streams(&connections, max_connections - 1).await;
    let idle = Arc::new(Activity::new(Arc::clone(&connections)));
    let _slot = connections.slot(&idle).await;
    time::sleep(Duration::from_secs(1)).await;

    assert!(!connections.close_expendable(), "not all have been scanned");
    assert!(connections.close_expendable());
    assert!(idle.is_ending());
    assert_eq!(ending(&streams), 0);
    assert!(!connections.close_expendable(), "the scan starts again");
    assert!(connections.close_expendable());
    assert_eq!(ending(&streams), 1);
    // Nothing is idle: the next scan need not be complete.
    assert!(connections.close_expendable());
    assert_eq!(ending(&streams), 2);
}

#[tokio::test(start_paused = true)]
async fn quiet_stalled_and_new_connections_make_room_in_this_order() {
    let connections = Connections::new(Bounds { max_connections: 3, max_buffered_bytes: 1 << 20 });
    let stalled = Arc::new(Activity::new(Arc::clone(&connections)));
    let _stalled = (connections.slot(&stalled).await, stalled.start_http1());
    stalled.set_awaiting_body(true);
    assert!(!connections.close_expendable(), "it may go on");
    time::sleep(Duration::from_secs(2)).await;
    let new = Arc::new(Activity::new(Arc::clone(&connections)));
    let _slot = connections.slot(&new).await;
    let streams = quiet_streams(&connections, 1).await;

    let ending = || (ending(&streams), stalled.is_ending(), new.is_ending());
    assert!(connections.close_expendable());
    assert_eq!(ending(), (1, false, false));
    assert!(connections.close_expendable());
    assert_eq!(ending(), (1, true, false));
    assert!(connections.close_expendable());
    assert_eq!(ending(), (1, true, true), "better than none");
}
