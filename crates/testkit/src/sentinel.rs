//! Redis Sentinel.

use std::time::Duration;

use crate::{Redis, RedisBuilder, Skip, redis::field, wait_until};

const NAME: &str = "headgate";
const SENTINELS: usize = 3;
const TIMEOUT: Duration = Duration::from_mins(3);

/// Milliseconds after which a silent master counts as down, until it is killed. On a busy machine it
/// may be slow, and nothing may follow from that.
const STAYS_UP: usize = 60_000;

/// Discovery takes 2 s and the refresh of replicas 10 s, which is long for a test. A sentinel also
/// pauses for 30 s when its timer is 2 s late, as on a busy machine.
const PACE: &[&str] =
    &["SENTINEL", "DEBUG", "PUBLISH-PERIOD", "100", "INFO-PERIOD", "200", "TILT-PERIOD", "1000"];

/// A master, a replica and three sentinels, which fail over in about a second.
#[derive(Debug)]
pub struct Sentinel {
    sentinels: Vec<Redis>,
    servers: Vec<Redis>,
}

// === impl Sentinel ===

impl Sentinel {
    /// Starts all servers, and waits until the replica is in sync and the sentinels know all
    /// servers.
    ///
    /// # Errors
    ///
    /// [`Skip`] if `redis-server` or `redis-cli` is not installed.
    ///
    /// # Panics
    ///
    /// If they do not find each other.
    pub fn start() -> Result<Self, Skip> {
        let master = Redis::builder().args(["--repl-diskless-sync-delay", "0"]).start()?;
        let port = master.port().to_string();
        let mut builders = vec![replica_of(&port)];
        builders.extend((0..SENTINELS).map(|_| Redis::builder().sentinel(config(&port))));

        let mut started = RedisBuilder::start_all(builders)?;
        let sentinels = started.split_off(1);
        let replica = started.remove(0);
        let this = Self { sentinels, servers: vec![master, replica] };
        for sentinel in &this.sentinels {
            // Not in Redis before 7.0, where it only takes longer.
            sentinel.cli(PACE);
        }
        let ready = wait_until(TIMEOUT, || this.is_ready());
        assert!(ready, "the sentinels did not find each other: {:#?}", this.views());
        Ok(this)
    }

    /// URLs of the sentinels.
    pub fn sentinel_urls(&self) -> Vec<String> {
        self.sentinels.iter().map(Redis::url).collect()
    }

    /// Sentinel `i`, which a test can kill or pause.
    pub fn sentinel(&self, i: usize) -> &Redis {
        &self.sentinels[i]
    }

    /// Name of the master.
    pub fn master_name(&self) -> &'static str {
        NAME
    }

    /// Port of the master, according to the first sentinel that responds.
    ///
    /// # Panics
    ///
    /// If no sentinel responds.
    #[track_caller]
    pub fn master_port(&self) -> u16 {
        self.sentinels.iter().find_map(master_port).expect("a sentinel that answers")
    }

    /// The current master.
    ///
    /// # Panics
    ///
    /// If no sentinel responds.
    #[track_caller]
    pub fn master(&self) -> &Redis {
        let port = self.master_port();
        let found = self.servers.iter().find(|server| server.port() == port);
        found.expect("a master that we started")
    }

    /// Kills (SIGKILL) the current master.
    ///
    /// # Panics
    ///
    /// If no sentinel responds.
    #[track_caller]
    pub fn kill_master(&self) {
        self.master().kill();
        for (i, sentinel) in self.sentinels.iter().enumerate() {
            set_down_after(sentinel, down_after(i));
        }
    }

    /// Waits until all running sentinels agree on a master, and it is one.
    ///
    /// # Panics
    ///
    /// If that does not happen in time.
    #[track_caller]
    pub fn wait_for_failover(&self) {
        let done = wait_until(TIMEOUT, || self.agree_on_live_master());
        assert!(done, "no failover: {:#?}", self.views());
        for sentinel in &self.sentinels {
            set_down_after(sentinel, STAYS_UP);
        }
    }

    fn is_ready(&self) -> bool {
        let others = (SENTINELS - 1).to_string();
        let is_linked = self.servers[1]
            .ask(&["INFO", "replication"])
            .is_some_and(|info| field(&info, "master_link_status") == Some("up"));
        is_linked
            && self.sentinels.iter().all(|sentinel| {
                has(sentinel, "num-slaves", "1")
                    && has(sentinel, "num-other-sentinels", &others)
                    && has_healthy_replica(sentinel)
            })
    }

    fn agree_on_live_master(&self) -> bool {
        let mut named =
            self.sentinels.iter().filter(|sentinel| sentinel.is_awake()).map(master_port);
        let Some(Some(port)) = named.next() else {
            return false;
        };
        named.all(|other| other == Some(port))
            && self
                .servers
                .iter()
                .find(|server| server.port() == port)
                .and_then(|server| server.ask(&["ROLE"]))
                .is_some_and(|role| role.starts_with("master"))
    }

    /// State of the sentinels, for the message of a failed wait.
    fn views(&self) -> Vec<Option<String>> {
        self.sentinels.iter().map(|sentinel| sentinel.ask(&["SENTINEL", "MASTER", NAME])).collect()
    }
}

fn replica_of(port: &str) -> RedisBuilder {
    Redis::builder().args(["--repl-diskless-sync-delay", "0", "--replicaof", "127.0.0.1", port])
}

/// The configuration of a sentinel. The quorum is 1.
fn config(master_port: &str) -> String {
    format!(
        "sentinel monitor {NAME} 127.0.0.1 {master_port} 1\n\
         sentinel down-after-milliseconds {NAME} {STAYS_UP}\n\
         sentinel failover-timeout {NAME} 2000\n"
    )
}

/// Milliseconds after which sentinel `i` detects a killed master: a second more than the previous
/// one. Sentinels that detect it at the same time would each vote for themselves, and retry only
/// seconds later.
const fn down_after(i: usize) -> usize {
    500 + 1_000 * i
}

/// Does nothing if the sentinel is down itself.
fn set_down_after(sentinel: &Redis, millis: usize) {
    let millis = millis.to_string();
    let set = sentinel.ask(&["SENTINEL", "SET", NAME, "down-after-milliseconds", &millis]);
    assert!(set.is_none_or(|answer| answer == "OK"));
}

fn master_port(sentinel: &Redis) -> Option<u16> {
    let address = sentinel.ask(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME])?;
    address.lines().nth(1)?.parse().ok()
}

fn has(sentinel: &Redis, name: &str, value: &str) -> bool {
    sentinel
        .ask(&["SENTINEL", "MASTER", NAME])
        .is_some_and(|facts| fact(&facts, name) == Some(value))
}

/// Returns true if a sentinel has a healthy replica, which it would promote.
fn has_healthy_replica(sentinel: &Redis) -> bool {
    sentinel.ask(&["SENTINEL", "REPLICAS", NAME]).is_some_and(|facts| {
        fact(&facts, "master-link-status") == Some("ok") && fact(&facts, "flags") == Some("slave")
    })
}

/// The value of `name` in alternating lines of names and values.
fn fact<'a>(facts: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = facts.lines();
    while let (Some(key), Some(value)) = (lines.next(), lines.next()) {
        if key == name {
            return Some(value);
        }
    }
    None
}
