//! The servers that a configuration names: one, or the nodes of a cluster.

use std::sync::Arc;

use headgate::{Check, StoreError};
use redis::{Value, cmd};

use crate::{
    RedisConfig,
    call::Call,
    cluster::Cluster,
    config::Topology,
    dial::Dialer,
    link::Manner,
    node::{Node, Order},
    slot,
    source::Source,
    status::{Part, Status},
};

/// The servers that a configuration names.
pub(crate) enum Servers {
    One(Box<Node>),
    Cluster(Box<Cluster>),
}

impl Servers {
    /// Begins to connect, and returns at once.
    pub(crate) fn open(config: &RedisConfig) -> Self {
        let dialer = Dialer::new(config);
        let one = |source| Node::open(config, &dialer, &source, config.connections);
        match config.topology.clone() {
            Topology::Standalone(server) => Self::One(Box::new(one(Source::At(server)))),
            Topology::Sentinel { nodes, master, redis } => {
                Self::One(Box::new(one(Source::Sentinel { nodes, master, redis })))
            }
            Topology::Cluster(seeds) => {
                Self::Cluster(Box::new(Cluster::open(config, &dialer, &seeds)))
            }
        }
    }

    pub(crate) const fn is_cluster(&self) -> bool {
        matches!(self, Self::Cluster(_))
    }

    /// Whether the server of these checks, which share one, may be asked now.
    pub(crate) fn admits(&self, checks: &[Check<'_>]) -> bool {
        match self {
            Self::One(node) => node.admits(),
            Self::Cluster(cluster) => slot_of(checks).is_none_or(|slot| cluster.admits(slot)),
        }
    }

    /// Runs the script for `checks`, which share a server. `must` also sends it when too many calls are in
    /// flight.
    pub(crate) async fn run(
        &self,
        call: &Call<'_>,
        checks: &[Check<'_>],
        must: bool,
    ) -> Result<Value, StoreError> {
        self.perform(Order::Script(call), slot_of(checks).unwrap_or_default(), must).await
    }

    async fn perform(&self, order: Order<'_>, slot: u16, must: bool) -> Result<Value, StoreError> {
        match self {
            Self::One(node) => {
                let answer = node.perform(order, Manner { asking: false, must }).await;
                answer.map_err(|error| error.into_store_error(node.timeout()))
            }
            Self::Cluster(cluster) => cluster.perform(order, slot, must).await,
        }
    }

    /// Whether Redis has a subject of this name.
    pub(crate) async fn has(&self, name: &str) -> Result<bool, StoreError> {
        let slot = slot::of(name.as_bytes());
        let may_ask = match self {
            Self::One(node) => node.admits(),
            Self::Cluster(cluster) => cluster.admits(slot),
        };
        if !may_ask {
            return Err(StoreError::BreakerOpen);
        }
        let command = cmd("EXISTS").arg(name).clone();
        let answer = self.perform(Order::Command(&command), slot, false).await?;
        Ok(answer == Value::Int(1))
    }

    /// How the servers are.
    pub(crate) fn status(&self) -> Status {
        match self {
            Self::One(node) => Status::of(vec![Part::of(node, None)]),
            Self::Cluster(cluster) => match cluster.table() {
                Ok(None) => Status::of(Vec::new()),
                Err(error) => Status::of(vec![Part::away("cluster", error.to_string())]),
                Ok(Some(table)) => {
                    let part = |node: &Arc<Node>| Part::of(node, Some(table.slots_of(node)));
                    let mut parts: Vec<Part> = table.nodes().iter().map(part).collect();
                    let gaps = table.gaps();
                    if !gaps.is_empty() {
                        parts.push(Part::away(
                            &format!("slots {gaps}"),
                            "no node serves them".into(),
                        ));
                    }
                    Status::of(parts)
                }
            },
        }
    }
}

/// The slot of checks that share one.
fn slot_of(checks: &[Check<'_>]) -> Option<u16> {
    checks.first().map(|check| slot::of(check.key().to_string().as_bytes()))
}
