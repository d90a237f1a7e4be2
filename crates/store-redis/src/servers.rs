//! The servers of a configuration: one, or the nodes of a cluster.

use std::sync::Arc;

use headgate::{Check, StoreError};
use redis::{Cmd, Value, cmd};

use crate::{
    RedisConfig,
    call::Call,
    cluster::Cluster,
    config::Topology,
    dial::Dialer,
    endpoint::Endpoint,
    node::{Node, Operation},
    pool::SendOptions,
    slot,
    status::{ServerStatus, Status},
};

/// The servers of a configuration.
pub(crate) enum Servers {
    One(Box<Node>),
    Cluster(Box<Cluster>),
}

impl Servers {
    /// Starts to connect in the background.
    pub(crate) fn open(config: &RedisConfig) -> Self {
        let dialer = Dialer::new(config);
        let one = |endpoint| Node::open(config, &dialer, &endpoint, config.connections);
        match config.topology.clone() {
            Topology::Standalone(server) => Self::One(Box::new(one(Endpoint::At(server)))),
            Topology::Sentinel { nodes, master, redis } => {
                Self::One(Box::new(one(Endpoint::Sentinel { nodes, master, redis })))
            }
            Topology::Cluster(seeds) => {
                Self::Cluster(Box::new(Cluster::open(config, &dialer, &seeds)))
            }
        }
    }

    pub(crate) const fn is_cluster(&self) -> bool {
        matches!(self, Self::Cluster(_))
    }

    /// Returns `true` if the circuit breaker of the server of `checks`, which share one, admits a
    /// call.
    pub(crate) fn admits(&self, checks: &[Check<'_>]) -> bool {
        match self {
            Self::One(node) => node.admits(),
            Self::Cluster(cluster) => slot_of(checks).is_none_or(|slot| cluster.admits(slot)),
        }
    }

    /// Runs the script for `checks`, which share a server. With `priority`, more calls may be in
    /// flight.
    pub(crate) async fn run(
        &self,
        call: &Call<'_>,
        checks: &[Check<'_>],
        priority: bool,
    ) -> Result<Value, StoreError> {
        self.execute(Operation::Script(call), slot_of(checks).unwrap_or_default(), priority).await
    }

    async fn execute(
        &self,
        operation: Operation<'_>,
        slot: u16,
        priority: bool,
    ) -> Result<Value, StoreError> {
        match self {
            Self::One(node) => {
                let answer = node.execute(operation, SendOptions { asking: false, priority }).await;
                answer.map_err(|error| error.into_store_error(node.timeout()))
            }
            Self::Cluster(cluster) => cluster.execute(operation, slot, priority).await,
        }
    }

    /// Returns `true` if Redis has a key of this name.
    pub(crate) async fn has(&self, name: &str) -> Result<bool, StoreError> {
        let answer = self.ask(name, cmd("EXISTS").arg(name)).await?;
        Ok(answer == Value::Int(1))
    }

    /// Executes a command that reads the key `name`, unless the circuit breaker of its server is
    /// open.
    pub(crate) async fn ask(&self, name: &str, command: &Cmd) -> Result<Value, StoreError> {
        let slot = slot::of(name.as_bytes());
        let admitted = match self {
            Self::One(node) => node.admits(),
            Self::Cluster(cluster) => cluster.admits(slot),
        };
        if !admitted {
            return Err(StoreError::BreakerOpen);
        }
        self.execute(Operation::Command(command), slot, false).await
    }

    /// State of the servers.
    pub(crate) fn status(&self) -> Status {
        match self {
            Self::One(node) => Status::of(vec![ServerStatus::of(node, None)]),
            Self::Cluster(cluster) => match cluster.slot_map() {
                Ok(None) => Status::of(Vec::new()),
                Err(error) => Status::of(vec![ServerStatus::down("cluster", error.to_string())]),
                Ok(Some(slot_map)) => {
                    let server =
                        |node: &Arc<Node>| ServerStatus::of(node, Some(slot_map.slots_of(node)));
                    let mut servers: Vec<ServerStatus> =
                        slot_map.nodes().iter().map(server).collect();
                    let gaps = slot_map.gaps();
                    if !gaps.is_empty() {
                        servers.push(ServerStatus::down(
                            &format!("slots {gaps}"),
                            "no node serves these slots".into(),
                        ));
                    }
                    Status::of(servers)
                }
            },
        }
    }
}

/// The slot of checks that share one.
fn slot_of(checks: &[Check<'_>]) -> Option<u16> {
    checks.first().map(|check| slot::of(check.key().to_string().as_bytes()))
}
