//! Facts about the servers that an operator wants checked: version, persistence, clock.

use std::time::Duration;

use headgate::Clock;
use redis::{Value, cmd};
use tokio::time::{Instant, sleep};

use crate::{
    cluster::Cluster, error::ErrorClass, memory::Memory, node::Node, reply, servers::Servers,
};

/// Facts about one server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inspection {
    /// Address without credentials; for a node of a cluster, with its slots.
    pub name: String,
    /// Error of the server, if it cannot be reached.
    pub error: Option<String>,
    /// Memory use and eviction policy.
    pub memory: Option<Memory>,
    /// Version of Redis; `None` if an ACL forbids `INFO`.
    pub version: Option<String>,
    /// Persistence; `None` if an ACL forbids `INFO`.
    pub persistence: Option<Persistence>,
    /// Microseconds by which our clock is ahead of the server's; negative if behind. `None` if an
    /// ACL forbids `TIME`.
    pub clock_ahead: Option<i64>,
}

/// Persistence of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Persistence {
    /// Every write is logged (`appendonly yes`).
    pub append_only: bool,
    /// The last snapshot or write of the log failed, after which Redis may refuse writes.
    pub failed: bool,
}

/// Pause between two looks at a slot map that is not known yet.
const PAUSE: Duration = Duration::from_millis(10);

/// Inspects every server.
pub(crate) async fn inspect(servers: &Servers, clock: &dyn Clock) -> Vec<Inspection> {
    match servers {
        Servers::One(node) => vec![inspect_node(node, node.name().to_owned(), clock).await],
        Servers::Cluster(cluster) => inspect_cluster(cluster, clock).await,
    }
}

async fn inspect_cluster(cluster: &Cluster, clock: &dyn Clock) -> Vec<Inspection> {
    let down = |error: String| {
        vec![Inspection { name: "cluster".into(), error: Some(error), ..Inspection::default() }]
    };
    let deadline = Instant::now() + cluster.timeout();
    let slot_map = loop {
        match cluster.slot_map() {
            Ok(Some(slot_map)) => break slot_map,
            Err(error) => return down(error.to_string()),
            Ok(None) if Instant::now() >= deadline => return down("no node responds".into()),
            Ok(None) => sleep(PAUSE).await,
        }
    };
    let mut inspections = Vec::new();
    for node in slot_map.nodes() {
        let name = format!("slots {} ({})", slot_map.slots_of(node), node.name());
        inspections.push(inspect_node(node, name, clock).await);
    }
    let gaps = slot_map.gaps();
    if !gaps.is_empty() {
        let error = Some("no node serves these slots".into());
        inspections.push(Inspection {
            name: format!("slots {gaps}"),
            error,
            ..Inspection::default()
        });
    }
    inspections
}

async fn inspect_node(node: &Node, name: String, clock: &dyn Clock) -> Inspection {
    // The first reply waits for the connection: only the second one is a measurement.
    let first = node.query(&cmd("TIME")).await;
    let is_refused = |class| matches!(class, Some(ErrorClass::Rejected));
    match first {
        Err(error) if !is_refused(error.class()) => {
            let error = error.into_store_error(node.timeout()).to_string();
            let error = Some(node.error().unwrap_or(error));
            return Inspection { name, error, ..Inspection::default() };
        }
        _ => {}
    }
    let info = node.query(&cmd("INFO")).await.ok();
    let info = info.as_ref().and_then(reply::word).unwrap_or_default();
    Inspection {
        name,
        error: None,
        memory: node.load_memory().await,
        version: field(&info, "redis_version").map(str::to_owned),
        persistence: Persistence::from_info(&info),
        clock_ahead: clock_ahead(node, clock).await,
    }
}

/// Measures the server's clock. The middle of the round trip is when it was read, give or take half
/// of it.
async fn clock_ahead(node: &Node, clock: &dyn Clock) -> Option<i64> {
    let (began, started) = (clock.now(), clock.steady());
    let time = node.query(&cmd("TIME")).await.ok()?;
    let middle = began.as_micros() + clock.steady().saturating_sub(started) / 2;
    let Value::Array(parts) = time else { return None };
    let part = |i: usize| parts.get(i).and_then(reply::word)?.parse::<u64>().ok();
    let theirs = part(0)? * 1_000_000 + part(1)?;
    Some(middle.wrapping_sub(theirs).cast_signed())
}

fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.map(str::trim)
}

// === impl Persistence ===

impl Persistence {
    fn from_info(info: &str) -> Option<Self> {
        let failed = |name: &str| field(info, name).is_some_and(|status| status != "ok");
        Some(Self {
            append_only: field(info, "aof_enabled")? == "1",
            failed: failed("rdb_last_bgsave_status") || failed("aof_last_write_status"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_persistence() {
        let info = |aof: u8, status: &str| {
            format!(
                "aof_enabled:{aof}\r\nrdb_last_bgsave_status:{status}\r\naof_last_write_status:ok\r\n"
            )
        };
        let persistence = Persistence::from_info(&info(1, "ok")).unwrap();
        assert!(persistence.append_only && !persistence.failed);
        let persistence = Persistence::from_info(&info(0, "err")).unwrap();
        assert!(!persistence.append_only && persistence.failed);
        assert_eq!(Persistence::from_info("# Server"), None);
    }
}
