//! Hears from PostgreSQL that rules or quotas changed.

use std::time::Duration;

use sqlx::{PgPool, postgres::PgListener};
use tokio::{sync::Notify, time::timeout};

use crate::{outage::Outage, session::answered};

/// Where whoever writes rules tells of it.
pub(crate) const RULES: &str = "headgate_rate_limit_rules";

/// Where whoever writes quota policies tells of it.
pub(crate) const QUOTAS: &str = "headgate_quota_policies";

/// Tells of it, once the transaction is committed.
pub(crate) const NOTIFY: &str = "SELECT pg_notify($1, '')";

/// After so much silence we ask whether anybody is there: a server that is gone without a word
/// would never be missed.
const SILENCE: Duration = Duration::from_secs(10);

/// Wakes `changed` once it listens and then after every change; says why it stopped.
pub(crate) async fn listen(pool: &PgPool, channel: &str, changed: &Notify) -> Outage {
    match hear(pool, channel, changed).await {
        Ok(()) => Outage::NotHeard,
        Err(outage) => outage,
    }
}

async fn hear(pool: &PgPool, channel: &str, changed: &Notify) -> Result<(), Outage> {
    let mut listener = PgListener::connect_with(pool).await?;
    // Whoever asks again also learns what it missed: a new connection would hide that.
    listener.eager_reconnect(false);
    answered(listener.listen(channel)).await?;
    changed.notify_one();
    loop {
        match timeout(SILENCE, listener.try_recv()).await {
            Ok(Ok(Some(_))) => changed.notify_one(),
            Ok(Ok(None)) => return Ok(()),
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => answered(sqlx::query("SELECT 1").execute(&mut listener)).await.map(drop)?,
        }
    }
}
