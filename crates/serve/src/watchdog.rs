//! Closes connections that are idle or stalled.

use std::time::Duration;

use tokio::time;

use crate::{
    activity::{Activity, INTERVALS},
    connections::EndReason,
};

/// Waits until the connection has to be closed. Returns the reason.
///
/// That is after `idle` without a request, or without progress of a response; either may take a
/// quarter longer. Pings do not count. A connection whose responses are open, but without data for
/// as long, is only marked as quiet: it may make room for a new one.
pub(crate) async fn watch(activity: &Activity, idle: Duration) -> EndReason {
    tokio::select! {
        reason = poll_activity(activity, idle) => reason,
        reason = activity.ended() => reason,
    }
}

async fn poll_activity(activity: &Activity, idle: Duration) -> EndReason {
    let (mut silent, mut stuck, mut quiet) = (0, 0, 0);
    let (mut started, mut written) = (0, 0);
    loop {
        time::sleep(idle / INTERVALS as u32).await;
        if activity.next_interval() {
            return EndReason::Stalled;
        }
        let (written_now, unwritten) = activity.progress();
        stuck = if unwritten > 0 && written_now == written { stuck + 1 } else { 0 };
        if stuck == INTERVALS {
            return EndReason::Stalled;
        }
        let started_now = activity.started();
        let is_quiet = !activity.take_data() && started_now == started;
        quiet = if is_quiet { quiet + 1 } else { 0 };
        activity.set_quiet(quiet >= INTERVALS);
        silent = if activity.is_idle() && started_now == started { silent + 1 } else { 0 };
        if silent == INTERVALS {
            return leave(activity, idle).await;
        }
        (started, written) = (started_now, written_now);
    }
}

/// Sends HTTP/2 peers a GOAWAY before the connection is closed, so that a request in transit is
/// answered.
async fn leave(activity: &Activity, idle: Duration) -> EndReason {
    if activity.is_http2() {
        activity.abandon();
        time::sleep(idle / INTERVALS as u32).await;
    }
    EndReason::Idle
}
