//! Hears from PostgreSQL that rules, quotas or service documents changed.

use std::time::Duration;

use headgate_service_config::repository::PayloadHandler;
use sqlx::{PgPool, postgres::PgListener};
use tokio::{sync::Notify, time::timeout};

use crate::{outage::Outage, session::answered};

/// Where whoever writes rules tells of it.
pub(crate) const RULES: &str = "headgate_rate_limit_rules";

/// Where whoever writes quota policies tells of it.
pub(crate) const QUOTAS: &str = "headgate_quota_policies";

/// Tells of it, once the transaction is committed.
pub(crate) const NOTIFY: &str = "SELECT pg_notify($1, $2)";

/// After so much silence we ask whether anybody is there: a server that is gone without a word
/// would never be missed.
const SILENCE: Duration = Duration::from_secs(10);

/// Who is told of a change.
#[derive(Clone, Copy)]
pub(crate) enum Heard<'h> {
    /// Somebody who wants to know that there was one.
    Change(&'h Notify),
    /// Somebody who wants to know what was said of it.
    Payload(&'h PayloadHandler<'h>),
}

impl Heard<'_> {
    fn tell(self, payload: &str) {
        match self {
            Self::Change(changed) => changed.notify_one(),
            Self::Payload(heard) => heard(payload),
        }
    }
}

/// Tells `heard` once it listens and then after every change; says why it stopped.
pub(crate) async fn listen(pool: &PgPool, channel: &str, heard: Heard<'_>) -> Outage {
    match hear(pool, channel, heard).await {
        Ok(()) => Outage::NotHeard,
        Err(outage) => outage,
    }
}

async fn hear(pool: &PgPool, channel: &str, heard: Heard<'_>) -> Result<(), Outage> {
    let mut listener = PgListener::connect_with(pool).await?;
    // Whoever asks again also learns what it missed: a new connection would hide that.
    listener.eager_reconnect(false);
    answered(listener.listen(channel)).await?;
    heard.tell("");
    loop {
        match timeout(SILENCE, listener.try_recv()).await {
            Ok(Ok(Some(notification))) => heard.tell(notification.payload()),
            Ok(Ok(None)) => return Ok(()),
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => answered(sqlx::query("SELECT 1").execute(&mut listener)).await.map(drop)?,
        }
    }
}
