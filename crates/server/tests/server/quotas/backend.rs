//! The storage of quotas.

use std::time::Duration;

use headgate_testkit::{Postgres, Redis, Skip};
use tempfile::NamedTempFile;
use tokio::time::{sleep, timeout};

use crate::harness::Server;

const TOKEN: &str = "admin-token-0123456789abcdef0123456789ab";

/// A PostgreSQL and a Redis that the test can stop.
pub(super) struct Backend {
    pub(super) postgres: Postgres,
    pub(super) redis: Redis,
    token: NamedTempFile,
}

impl Backend {
    pub(super) fn start() -> Result<Self, Skip> {
        let (postgres, redis) = (Postgres::start()?, Redis::start()?);
        let token = NamedTempFile::new().expect("a file");
        std::fs::write(token.path(), TOKEN).expect("a token");
        Ok(Self { postgres, redis, token })
    }

    /// Starts a server on both. All servers of a test have the same administrator.
    pub(super) async fn server(&self) -> Server {
        self.server_with(&[]).await
    }

    pub(super) async fn server_with(&self, keys: &[(&str, &str)]) -> Server {
        let (database, store) = (self.postgres.url(), self.redis.url());
        let token = self.token.path().display();
        let tokens = format!("[{{name: admin, role: sys_admin, token_file: {token}}}]");
        let own = [
            ("database.url", database.as_str()),
            // A busy machine is not an outage.
            ("database.connect_timeout_seconds", "60"),
            ("redis.url", store.as_str()),
            ("redis.timeout_ms", "30000"),
            ("ratelimit.refresh_interval_seconds", "1"),
            ("auth.tokens", tokens.as_str()),
        ];
        let mut server = Server::start(&[&own, keys].concat()).await;
        server.admin_token = Some(TOKEN.to_owned());
        until(async || server.get("/readyz").await.text.contains(r#""status":"ready""#)).await;
        server
    }
}

/// Polls until the condition holds.
pub(super) async fn until(fits: impl AsyncFn() -> bool) {
    let waiting = async {
        while !fits().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(120), waiting).await.expect("in time");
}
