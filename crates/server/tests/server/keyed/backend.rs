//! The stores: behaviour is the same on all of them.

use std::time::Duration;

use headgate_testkit::{Redis, RedisCluster};

use crate::harness::Server;

pub(crate) enum Backend {
    Memory,
    Redis(Box<Redis>),
    Cluster(RedisCluster),
}

/// A busy machine is not an outage.
const PATIENT: (&str, &str) = ("redis.timeout_ms", "30000");

impl Backend {
    pub(crate) fn redis(redis: Redis) -> Self {
        Self::Redis(Box::new(redis))
    }

    /// Starts a server on this store, and waits until it is ready.
    pub(crate) async fn serve(&self, keys: &[(&str, &str)]) -> Server {
        let (url, urls) = match self {
            Self::Memory => return Server::start(keys).await,
            Self::Redis(redis) => ("redis.url", redis.url()),
            Self::Cluster(cluster) => ("redis.urls", cluster.urls().join(",")),
        };
        let server = Server::start(&[&[(url, urls.as_str()), PATIENT], keys].concat()).await;
        until_up(&server).await;
        server
    }

    /// Sends a command to Redis, on the node that has the key.
    pub(crate) fn cli(&self, command: &[&str]) -> String {
        match self {
            Self::Memory => panic!("memory is not asked like this"),
            Self::Redis(redis) => redis.cli(command),
            Self::Cluster(cluster) => {
                let nodes = (0..cluster.urls().len()).map(|i| cluster.node(i).cli(command));
                let mut answers = nodes.filter(|answer| !answer.starts_with("MOVED"));
                answers.next().expect("a node that has the key")
            }
        }
    }
}

/// Waits until the store answers.
pub(crate) async fn until_up(server: &Server) {
    let waiting = async {
        while server.get("/actuator/health").await.json()["status"] != "UP" {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), waiting).await.expect("a store that answers");
}
