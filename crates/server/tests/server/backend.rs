//! The storage of tests: the embedded default, and PostgreSQL with Redis.

use std::time::Duration;

use headgate_testkit::{Database, Postgres, Redis, Skip};
use tokio::time::{sleep, timeout};

use crate::harness::Server;

/// Storage of rules and counters.
pub(crate) enum Backend {
    /// A file and memory.
    Embedded,
    /// A database and a Redis of the test's own.
    PostgresAndRedis(Database, Box<Redis>),
}

/// A busy machine is not an outage.
const PATIENT: [(&str, &str); 2] =
    [("redis.timeout_ms", "30000"), ("database.connect_timeout_seconds", "60")];

/// Runs each of these functions as a test on both backends.
macro_rules! on_both_backends {
    ($($test:ident),+ $(,)?) => {
        mod embedded {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $test() {
                    super::$test(&$crate::backend::Backend::Embedded).await;
                }
            )+
        }

        mod postgres_and_redis {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $test() {
                    let started = $crate::backend::Backend::postgres_and_redis();
                    let backend = headgate_testkit::require!(started);
                    super::$test(&backend).await;
                }
            )+
        }
    };
}

pub(crate) use on_both_backends;

// === impl Backend ===

impl Backend {
    pub(crate) fn postgres_and_redis() -> Result<Self, Skip> {
        // The database is one of many on a server that the tests share; a Redis starts in 20 ms.
        Ok(Self::PostgresAndRedis(Postgres::shared()?, Box::new(Redis::start()?)))
    }

    /// Starts a server with these keys, and waits until it is ready.
    pub(crate) async fn serve(&self, keys: &[(&str, &str)]) -> Server {
        let Self::PostgresAndRedis(database, redis) = self else {
            return Server::start(keys).await;
        };
        let url = redis.url();
        let own = [("database.url", database.url()), ("redis.url", url.as_str())];
        let server = Server::start(&[&own[..], &PATIENT, keys].concat()).await;
        until_ready(&server).await;
        server
    }
}

/// Waits until the server has its database and its store.
async fn until_ready(server: &Server) {
    let waiting = async {
        while server.get("/readyz").await.json()["status"] != "ready" {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(120), waiting).await.expect("a server that is ready");
}
