//! State of the servers: connection errors and memory.

use crate::{memory::Memory, node::Node};

/// State of the servers of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// The servers; empty until the nodes of a cluster are known.
    pub servers: Vec<ServerStatus>,
}

/// State of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerStatus {
    /// Address without credentials; for a node of a cluster, with its slots.
    pub name: String,
    /// Error of the server, if it is down.
    pub error: Option<String>,
    /// Memory, as last reported.
    pub memory: Option<Memory>,
}

impl Status {
    pub(crate) fn of(servers: Vec<ServerStatus>) -> Self {
        Self { servers }
    }

    /// Description of the servers that are down; `None` if all are up.
    pub fn outage(&self) -> Option<String> {
        let down = self.servers.iter().filter_map(|server| {
            let error = server.error.as_ref()?;
            Some(if self.servers.len() == 1 {
                error.clone()
            } else {
                format!("{}: {error}", server.name)
            })
        });
        let down: Vec<String> = down.collect();
        match (down.len(), self.servers.len()) {
            (0, _) => None,
            (_, 1) => down.into_iter().next(),
            (count, all) => Some(format!("{count} of {all} servers are down: {}", down.join("; "))),
        }
    }

    /// Memory use of the fullest server as a fraction of its maximum; 0 without a maximum.
    pub fn memory_used_ratio(&self) -> f64 {
        let memories = self.servers.iter().filter_map(|server| server.memory.as_ref());
        memories.map(Memory::used_ratio).fold(0.0, f64::max)
    }

    /// Description of an eviction policy that lifts limits; `None` if there is none.
    pub fn eviction(&self) -> Option<String> {
        let mut memories = self.servers.iter().filter_map(|server| server.memory.as_ref());
        let risk = memories.find(|memory| memory.evicts_counters())?;
        Some(format!(
            "Redis evicts counters when its memory is full (maxmemory-policy {}), which lifts limits: \
             set it to noeviction or volatile-ttl",
            risk.policy
        ))
    }
}

impl ServerStatus {
    pub(crate) fn of(node: &Node, slots: Option<String>) -> Self {
        let name = match slots {
            Some(slots) => format!("slots {slots} ({})", node.name()),
            None => node.name().to_owned(),
        };
        Self { name, error: node.error(), memory: node.memory() }
    }

    pub(crate) fn down(name: &str, error: String) -> Self {
        Self { name: name.to_owned(), error: Some(error), memory: None }
    }
}
