//! Notifications of PostgreSQL about changes.

use std::time::Duration;

use headgate_service_config::repository::PayloadHandler;
use sqlx::{PgPool, postgres::PgListener};
use tokio::{sync::Notify, time::timeout};

use crate::{outage::Outage, session::with_timeout};

/// Channel of changes of rules.
pub(crate) const RULES: &str = "headgate_rate_limit_rules";

/// Channel of changes of quota policies.
pub(crate) const QUOTAS: &str = "headgate_quota_policies";

/// Notifies when the transaction is committed.
pub(crate) const NOTIFY: &str = "SELECT pg_notify($1, $2)";

/// Interval without notifications after which the connection is checked: a server that disappears
/// without closing it would not be noticed.
const PING_INTERVAL: Duration = Duration::from_secs(10);

/// The receiver of notifications.
#[derive(Clone, Copy)]
pub(crate) enum Subscriber<'h> {
    /// Notified of every change, without its payload.
    Change(&'h Notify),
    /// Receives the payload of the notification.
    Payload(&'h PayloadHandler<'h>),
}

impl Subscriber<'_> {
    fn notify(self, payload: &str) {
        match self {
            Self::Change(changed) => changed.notify_one(),
            Self::Payload(handler) => handler(payload),
        }
    }
}

/// Notifies `subscriber` once it listens and after every change; returns the error that stopped it.
pub(crate) async fn listen(pool: &PgPool, channel: &str, subscriber: Subscriber<'_>) -> Outage {
    match receive(pool, channel, subscriber).await {
        Ok(()) => Outage::ListenerLost,
        Err(outage) => outage,
    }
}

async fn receive(pool: &PgPool, channel: &str, subscriber: Subscriber<'_>) -> Result<(), Outage> {
    let mut listener = PgListener::connect_with(pool).await?;
    // The caller must reconnect, because it has to read the changes that it missed.
    listener.eager_reconnect(false);
    with_timeout(listener.listen(channel)).await?;
    subscriber.notify("");
    loop {
        match timeout(PING_INTERVAL, listener.try_recv()).await {
            Ok(Ok(Some(notification))) => subscriber.notify(notification.payload()),
            Ok(Ok(None)) => return Ok(()),
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => {
                with_timeout(sqlx::query("SELECT 1").execute(&mut listener)).await.map(drop)?;
            }
        }
    }
}
