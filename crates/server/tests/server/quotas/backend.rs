//! What quotas are kept in.

use std::time::Duration;

use headgate_testkit::{Postgres, Redis, Skip};
use tempfile::NamedTempFile;
use tokio::time::{sleep, timeout};

use crate::harness::Server;

const TOKEN: &str = "admin-token-0123456789abcdef0123456789ab";

/// A PostgreSQL and a Redis of a test's own, which it can take away.
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

    /// A server on both. All of a test's servers know the same administrator.
    pub(super) async fn server(&self) -> Server {
        self.server_with(&[]).await
    }

    pub(super) async fn server_with(&self, keys: &[(&str, &str)]) -> Server {
        let (database, store) = (self.postgres.url(), self.redis.url());
        let token = self.token.path().display();
        let tokens = format!("[{{name: admin, role: sys_admin, token_file: {token}}}]");
        let own = [
            ("database.url", database.as_str()),
            ("database.connect_timeout_seconds", "1"),
            ("redis.url", store.as_str()),
            ("redis.timeout_ms", "5000"),
            ("ratelimit.refresh_interval_seconds", "1"),
            ("auth.tokens", tokens.as_str()),
        ];
        let mut server = Server::start(&[&own, keys].concat()).await;
        server.admin_token = Some(TOKEN.to_owned());
        until(async || server.get("/readyz").await.text.contains(r#""status":"ready""#)).await;
        server
    }
}

/// Asks until `fits`: other processes come and go in their own time.
pub(super) async fn until(fits: impl AsyncFn() -> bool) {
    let waiting = async {
        while !fits().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(30), waiting).await.expect("in time");
}
