//! Notifications to the service manager: `sd_notify` of systemd. Without `NOTIFY_SOCKET`, nothing
//! is sent.

use std::{
    future::Future,
    io,
    sync::{Mutex, PoisonError},
};

use sd_notify::NotifyState;
use tokio::time::{Instant, interval_at};
use tracing::{info, warn};

/// Set once the server stops: from then on, it reports nothing else.
static IS_STOPPING: Mutex<bool> = Mutex::new(false);

/// Reports that the server accepts requests: at the start, and after [`reloading`].
pub fn ready() {
    notify(&[NotifyState::Ready]);
}

/// Reports that the server reloads its configuration. Call [`ready`] afterwards, also if the reload
/// failed. A server that stops may still reload; the service manager is not notified.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(error) => log(&error),
    }
}

/// Reports that the server stops.
pub fn stopping() {
    let mut is_stopping = IS_STOPPING.lock().unwrap_or_else(PoisonError::into_inner);
    *is_stopping = true;
    send(&[NotifyState::Stopping]);
}

/// Reports that the server is alive, each time `check` completes, twice as often as the service
/// manager asks for (`WATCHDOG_USEC`). If a check does not complete in time, the service manager
/// restarts the server.
///
/// Returns at once if the service manager does not ask for it.
pub async fn watchdog<F: Future<Output = ()>>(check: impl Fn() -> F) {
    let Some(timeout) = sd_notify::watchdog_enabled().filter(|timeout| !timeout.is_zero()) else {
        return;
    };
    info!(?timeout, "the service manager watches this server");
    let mut turns = interval_at(Instant::now(), timeout / 2);
    loop {
        turns.tick().await;
        check().await;
        send(&[NotifyState::Watchdog]);
    }
}

/// Notifies, unless the server stops. The lock is held meanwhile, so that nothing follows the report
/// that it does.
fn notify(state: &[NotifyState<'_>]) {
    let is_stopping = IS_STOPPING.lock().unwrap_or_else(PoisonError::into_inner);
    if !*is_stopping {
        send(state);
    }
}

fn send(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        log(&error);
    }
}

fn log(error: &io::Error) {
    warn!(%error, "failed to notify the service manager");
}
