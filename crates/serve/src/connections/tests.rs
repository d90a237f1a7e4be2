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
