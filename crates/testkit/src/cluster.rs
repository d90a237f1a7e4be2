//! Redis Cluster, assembled with `CLUSTER` commands: `redis-cli --cluster create` waits for several
//! seconds.

use std::{iter, time::Duration};

use crate::{Redis, RedisBuilder, Skip, free_port, redis::field, wait_until};

const SLOTS: usize = 16_384;

/// A new master accepts writes after 2 s; elections take a few node timeouts.
const CLUSTER_TIMEOUT: Duration = Duration::from_mins(3);

const NODE_TIMEOUT: &str = "cluster-node-timeout";

/// Milliseconds after which a silent node counts as dead. On a busy machine a node may be slow, and
/// nothing may follow from that.
const STAYS_UP: &str = "60000";

/// The same while a cluster with replicas starts: nodes talk to each other more often.
const STARTS: &str = "5000";

/// The same from the death of a master until a replica has replaced it.
const FAILS_OVER: &str = "2000";

const NODE_ARGS: &[&str] = &[
    "--cluster-enabled",
    "yes",
    // A replica may lack recent data of its master in a short test. It is promoted anyway.
    "--cluster-replica-validity-factor",
    "0",
    "--cluster-allow-replica-migration",
    "no",
    "--repl-diskless-sync-delay",
    "0",
];

/// A Redis Cluster. With replicas, nodes detect that a master was killed within about two seconds.
#[derive(Debug)]
pub struct RedisCluster {
    /// The initial masters, then their replicas in the same order.
    nodes: Vec<Redis>,
    masters: usize,
    tls_ports: Vec<u16>,
}

// === impl RedisCluster ===

impl RedisCluster {
    /// Starts `masters` nodes with `replicas` each, and waits until all nodes agree on a complete
    /// cluster.
    ///
    /// # Errors
    ///
    /// [`Skip`] if `redis-server` or `redis-cli` is not installed.
    ///
    /// # Panics
    ///
    /// If there are no masters, or if the nodes do not agree.
    pub fn start(masters: usize, replicas_per_master: usize) -> Result<Self, Skip> {
        Self::start_with(masters, replicas_per_master, &[])
    }

    /// Starts `masters` nodes without replicas, which serve their slots even if another node is
    /// down (`cluster-require-full-coverage no`).
    ///
    /// # Errors
    ///
    /// [`Skip`] if `redis-server` or `redis-cli` is not installed.
    pub fn start_partial(masters: usize) -> Result<Self, Skip> {
        Self::start_with(masters, 0, &["--cluster-require-full-coverage", "no"])
    }

    fn start_with(masters: usize, replicas_per_master: usize, args: &[&str]) -> Result<Self, Skip> {
        assert!((1..=SLOTS).contains(&masters), "a cluster has masters, and no more than slots");
        let timeout = if replicas_per_master > 0 { STARTS } else { STAYS_UP };
        let node = node(timeout).args(args.iter().copied());
        let nodes = iter::repeat_n(node, masters * (1 + replicas_per_master));
        Self::assemble(nodes, masters, Vec::new())
    }

    /// Starts `masters` nodes without replicas that also listen with TLS. `args` name the
    /// certificates; clients need one.
    ///
    /// # Errors
    ///
    /// [`Skip`] if `redis-server` or `redis-cli` is not installed.
    pub fn start_tls(masters: usize, args: &[String]) -> Result<Self, Skip> {
        let ports: Vec<u16> = (0..masters).map(|_| free_port()).collect();
        let node = |port: &u16| {
            // Nodes tell clients with TLS the port with TLS only if they use it themselves.
            let tls = ["--tls-port", &port.to_string(), "--tls-cluster", "yes"].map(str::to_owned);
            node(STAYS_UP).args(tls).args(args)
        };
        Self::assemble(ports.iter().map(node), masters, ports.clone())
    }

    fn assemble(
        nodes: impl Iterator<Item = RedisBuilder>,
        masters: usize,
        tls_ports: Vec<u16>,
    ) -> Result<Self, Skip> {
        let cluster = Self { nodes: RedisBuilder::start_all(nodes)?, masters, tls_ports };
        cluster.assign_slots();
        cluster.introduce_nodes();
        cluster.attach_replicas();
        cluster.wait("is whole", |node| cluster.sees_all(node));
        cluster.set_node_timeout(STAYS_UP);
        Ok(cluster)
    }

    /// The addresses of all nodes, masters first.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(Redis::url).collect()
    }

    /// The addresses with TLS of all nodes.
    pub fn tls_urls(&self) -> Vec<String> {
        self.tls_ports.iter().map(|port| format!("rediss://127.0.0.1:{port}")).collect()
    }

    /// Node `i`: the initial masters, then replica `masters + i` of master `i`.
    pub fn node(&self, i: usize) -> &Redis {
        &self.nodes[i]
    }

    /// Kills (SIGKILL) the initial master `i`.
    ///
    /// # Panics
    ///
    /// If there is no such master.
    #[track_caller]
    pub fn kill_master(&self, i: usize) {
        assert!(i < self.masters, "there are {} masters", self.masters);
        self.nodes[i].kill();
        if self.nodes.len() > self.masters {
            self.set_node_timeout(FAILS_OVER);
        }
    }

    /// Waits until every running node sees all slots served by running nodes.
    ///
    /// # Panics
    ///
    /// If that does not happen in time, because a master without replicas is down.
    #[track_caller]
    pub fn wait_for_failover(&self) {
        self.wait("has failed over", |node| self.sees_live_masters(node));
        self.set_node_timeout(STAYS_UP);
    }

    fn set_node_timeout(&self, millis: &str) {
        for node in self.nodes.iter().filter(|node| node.is_awake()) {
            assert_eq!(node.cli(&["CONFIG", "SET", NODE_TIMEOUT, millis]), "OK");
        }
    }

    fn assign_slots(&self) {
        for (i, master) in self.nodes[..self.masters].iter().enumerate() {
            let (first, next) = (SLOTS * i / self.masters, SLOTS * (i + 1) / self.masters);
            run(master, &["ADDSLOTSRANGE", &first.to_string(), &(next - 1).to_string()]);
            // Nodes with equal epochs would first have to resolve the conflict.
            run(master, &["SET-CONFIG-EPOCH", &(i + 1).to_string()]);
        }
    }

    /// Introduces every pair of nodes: gossip would take seconds.
    fn introduce_nodes(&self) {
        for (i, node) in self.nodes.iter().enumerate() {
            for (j, other) in self.nodes.iter().enumerate().skip(i + 1) {
                let port = self.tls_ports.get(j).copied().unwrap_or_else(|| other.port());
                run(node, &["MEET", "127.0.0.1", &port.to_string()]);
            }
        }
        self.wait("knows its nodes", |node| self.knows_all(node));
    }

    fn attach_replicas(&self) {
        for (i, replica) in self.nodes[self.masters..].iter().enumerate() {
            let master = self.nodes[i % self.masters].cli(&["CLUSTER", "MYID"]);
            run(replica, &["REPLICATE", &master]);
        }
    }

    /// Waits until all running nodes agree.
    #[track_caller]
    fn wait(&self, what: &str, agrees: impl Fn(&Redis) -> bool) {
        let awake = || self.nodes.iter().filter(|node| node.is_awake());
        let done = wait_until(CLUSTER_TIMEOUT, || awake().all(&agrees));
        let views = || awake().map(|node| node.ask(&["CLUSTER", "NODES"]));
        assert!(done, "no agreement that the cluster {what}: {:#?}", views().collect::<Vec<_>>());
    }

    fn knows_all(&self, node: &Redis) -> bool {
        let known = self.nodes.len().to_string();
        node.ask(&["CLUSTER", "INFO"])
            .is_some_and(|info| field(&info, "cluster_known_nodes") == Some(&known))
            // A node in handshake is counted, but has no final id yet.
            && node.ask(&["CLUSTER", "NODES"]).is_some_and(|nodes| !nodes.contains("handshake"))
    }

    fn sees_all(&self, node: &Redis) -> bool {
        let replicas = self.nodes.len() - self.masters;
        let sees_replicas = node.ask(&["CLUSTER", "NODES"]).is_some_and(|nodes| {
            nodes.lines().filter(|line| line.contains("slave")).count() == replicas
        });
        // A master has no such field.
        let is_linked = node
            .ask(&["INFO", "replication"])
            .is_some_and(|info| field(&info, "master_link_status").is_none_or(|link| link == "up"));
        sees_replicas && is_linked && self.knows_all(node) && self.sees_live_masters(node)
    }

    fn sees_live_masters(&self, node: &Redis) -> bool {
        let is_ok = node
            .ask(&["CLUSTER", "INFO"])
            .is_some_and(|info| field(&info, "cluster_state") == Some("ok"));
        is_ok
            && node.ask(&["CLUSTER", "NODES"]).is_some_and(|nodes| {
                nodes.lines().filter_map(slot_owner).all(|port| self.is_awake(port))
            })
    }

    fn is_awake(&self, port: u16) -> bool {
        self.nodes.iter().any(|node| node.port() == port && node.is_awake())
    }
}

/// A node whose peers wait this many milliseconds for it.
fn node(timeout: &str) -> RedisBuilder {
    let timeout = [format!("--{NODE_TIMEOUT}"), timeout.to_owned()];
    Redis::builder().args(NODE_ARGS.iter().copied()).args(timeout)
}

/// Runs a `CLUSTER` command that changes something.
#[track_caller]
fn run(node: &Redis, command: &[&str]) {
    let answer = node.cli(&[&["CLUSTER"], command].concat());
    assert_eq!(answer, "OK", "CLUSTER {command:?}");
}

/// The port of a node that owns slots, from its line of `CLUSTER NODES`:
/// `id ip:port@bus flags master ping pong epoch link slot ...`.
fn slot_owner(line: &str) -> Option<u16> {
    let mut words = line.split_whitespace();
    let address = words.nth(1)?;
    words.nth(6)?;
    let (_, port) = address.split_once('@')?.0.rsplit_once(':')?;
    port.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_who_owns_slots() {
        let owner = "07c3 127.0.0.1:30004@40004,host master - 0 1426238317239 4 connected 0-5460";
        let replica = "6ec2 127.0.0.1:30002@40002 slave 07c3 0 1426238316232 2 connected";
        assert_eq!(slot_owner(owner), Some(30_004));
        assert_eq!(slot_owner(replica), None);
    }
}
