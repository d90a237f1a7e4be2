//! Ends connections that are idle or stalled.

use std::time::Duration;

use tokio::time;

use crate::{
    activity::{Activity, PARTS},
    connections::EndReason,
};

/// Waits until the connection must end, and says why.
///
/// It must end when it has asked nothing for `idle`, or when the peer has not taken for as long what
/// it asked for; both may last a quarter longer. A PING is no request, and its answer is none.
pub(crate) async fn watch(activity: &Activity, idle: Duration) -> EndReason {
    tokio::select! {
        reason = look(activity, idle) => reason,
        reason = activity.ended() => reason,
    }
}

async fn look(activity: &Activity, idle: Duration) -> EndReason {
    let (mut silent, mut stuck) = (0, 0);
    let (mut begun, mut written) = (0, 0);
    loop {
        time::sleep(idle / PARTS as u32).await;
        if activity.next_part() {
            return EndReason::Stalled;
        }
        let (written_now, unwritten) = activity.progress();
        stuck = if unwritten > 0 && written_now == written { stuck + 1 } else { 0 };
        if stuck == PARTS {
            return EndReason::Stalled;
        }
        let begun_now = activity.begun();
        silent = if activity.is_idle() && begun_now == begun { silent + 1 } else { 0 };
        if silent == PARTS {
            return leave(activity, idle).await;
        }
        (begun, written) = (begun_now, written_now);
    }
}

/// HTTP/2 peers are told that no more requests are taken before the connection ends; one that has
/// just sent a request gets its answer.
async fn leave(activity: &Activity, idle: Duration) -> EndReason {
    if activity.is_http2() {
        activity.leave();
        time::sleep(idle / PARTS as u32).await;
    }
    EndReason::Idle
}
