//! How the servers are: what does not answer, and whether counters may be thrown away.

use crate::{memory::Memory, node::Node};

/// How the servers of a store are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The servers; none while a cluster is not known yet.
    pub parts: Vec<Part>,
}

/// How one server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its address, without credentials; of a cluster's node, with its slots.
    pub name: String,
    /// Why it does not answer, if it does not.
    pub trouble: Option<String>,
    /// What it last said about its memory.
    pub memory: Option<Memory>,
}

impl Status {
    pub(crate) fn of(parts: Vec<Part>) -> Self {
        Self { parts }
    }

    /// What does not answer, in a sentence; nothing if everything does.
    pub fn outage(&self) -> Option<String> {
        let away = self.parts.iter().filter_map(|part| {
            let trouble = part.trouble.as_ref()?;
            Some(if self.parts.len() == 1 {
                trouble.clone()
            } else {
                format!("{}: {trouble}", part.name)
            })
        });
        let away: Vec<String> = away.collect();
        match (away.len(), self.parts.len()) {
            (0, _) => None,
            (_, 1) => away.into_iter().next(),
            (count, all) => Some(format!("{count} of {all} parts are away: {}", away.join("; "))),
        }
    }

    /// Share of its memory that the fullest server uses; 0 where none has a bound.
    pub fn memory_used_ratio(&self) -> f64 {
        let memories = self.parts.iter().filter_map(|part| part.memory.as_ref());
        memories.map(Memory::used_ratio).fold(0.0, f64::max)
    }

    /// Which eviction policies throw away counters, in a sentence; nothing if none does.
    pub fn eviction(&self) -> Option<String> {
        let mut memories = self.parts.iter().filter_map(|part| part.memory.as_ref());
        let risk = memories.find(|memory| memory.evicts_counters())?;
        Some(format!(
            "Redis evicts counters when its memory is full (maxmemory-policy {}), which lifts limits: \
             set it to noeviction or volatile-ttl",
            risk.policy
        ))
    }
}

impl Part {
    pub(crate) fn of(node: &Node, slots: Option<String>) -> Self {
        let name = match slots {
            Some(slots) => format!("slots {slots} ({})", node.name()),
            None => node.name().to_owned(),
        };
        Self { name, trouble: node.trouble(), memory: node.memory() }
    }

    pub(crate) fn away(name: &str, trouble: String) -> Self {
        Self { name: name.to_owned(), trouble: Some(trouble), memory: None }
    }
}
