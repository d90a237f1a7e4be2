//! Assignment of slots to nodes.

use std::sync::Arc;

use redis::Value;

use crate::{node::Node, reply, slot::SLOTS};

/// Assignment of slots to nodes.
#[derive(Debug)]
pub(crate) struct SlotMap {
    /// First slot, last slot and their node, in order.
    ranges: Vec<(u16, u16, Arc<Node>)>,
    nodes: Vec<Arc<Node>>,
}

/// A range of slots, and the address of its master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SlotRange {
    pub(crate) first: u16,
    pub(crate) last: u16,
    pub(crate) host: String,
    pub(crate) port: u16,
}

// === impl SlotMap ===

impl SlotMap {
    const LAST_SLOT: u16 = SLOTS - 1;

    pub(crate) fn new(mut ranges: Vec<(u16, u16, Arc<Node>)>) -> Self {
        ranges.sort_unstable_by_key(|(first, ..)| *first);
        let mut nodes: Vec<Arc<Node>> = Vec::new();
        for (_, _, node) in &ranges {
            if !nodes.iter().any(|known| Arc::ptr_eq(known, node)) {
                nodes.push(Arc::clone(node));
            }
        }
        Self { ranges, nodes }
    }

    pub(crate) fn owner(&self, slot: u16) -> Option<&Arc<Node>> {
        let i = self.ranges.partition_point(|(_, last, _)| *last < slot);
        self.ranges.get(i).filter(|(first, ..)| *first <= slot).map(|(_, _, node)| node)
    }

    pub(crate) fn nodes(&self) -> &[Arc<Node>] {
        &self.nodes
    }

    /// The slots of `node`, such as `0-5460`.
    pub(crate) fn slots_of(&self, node: &Arc<Node>) -> String {
        let own = self.ranges.iter().filter(|(_, _, owner)| Arc::ptr_eq(owner, node));
        let texts: Vec<String> = own.map(|(first, last, _)| span(*first, *last)).collect();
        texts.join(", ")
    }

    /// The slots without a node.
    pub(crate) fn gaps(&self) -> String {
        let mut texts = Vec::new();
        let mut next = 0;
        for (first, last, _) in &self.ranges {
            if *first > next {
                texts.push(span(next, first - 1));
            }
            next = last + 1;
        }
        if next <= Self::LAST_SLOT {
            texts.push(span(next, Self::LAST_SLOT));
        }
        texts.join(", ")
    }
}

impl PartialEq for SlotMap {
    fn eq(&self, other: &Self) -> bool {
        self.ranges.len() == other.ranges.len()
            && self.ranges.iter().zip(&other.ranges).all(|(one, other)| {
                (one.0, one.1) == (other.0, other.1) && Arc::ptr_eq(&one.2, &other.2)
            })
    }
}

fn span(first: u16, last: u16) -> String {
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}

/// Parses the reply of the node `asked` to `CLUSTER SLOTS`: first slot, last slot, master,
/// replicas.
pub(crate) fn ranges(slots: &Value, asked: &str) -> Option<Vec<SlotRange>> {
    let Value::Array(rows) = slots else { return None };
    rows.iter().map(|row| range(row, asked)).collect()
}

fn range(row: &Value, asked: &str) -> Option<SlotRange> {
    let Value::Array(fields) = row else { return None };
    let [Value::Int(first), Value::Int(last), Value::Array(master), ..] = &fields[..] else {
        return None;
    };
    let [host, Value::Int(port), ..] = &master[..] else { return None };
    // A node that does not know its own address leaves it empty: it is that of the connection.
    let host = reply::word(host).filter(|host| !host.is_empty() && host != "?");
    let [first, last, port] = [first, last, port].map(|number| u16::try_from(*number).ok());
    let (first, last) = (first?, last?);
    let is_range = first <= last && last <= SlotMap::LAST_SLOT;
    is_range.then_some(SlotRange {
        first,
        last,
        host: host.unwrap_or_else(|| asked.to_owned()),
        port: port?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(first: i64, last: i64, host: &str, port: i64) -> Value {
        let master = vec![Value::BulkString(host.into()), Value::Int(port)];
        Value::Array(vec![Value::Int(first), Value::Int(last), Value::Array(master)])
    }

    #[test]
    fn an_empty_host_is_that_of_the_connection() {
        let slots = Value::Array(vec![row(0, 5_460, "10.0.0.1", 6_379), row(5_461, 16_383, "", 7)]);
        let ranges = ranges(&slots, "asked").unwrap();
        let hosts: Vec<_> = ranges.iter().map(|range| (&*range.host, range.port)).collect();
        assert_eq!(hosts, [("10.0.0.1", 6_379), ("asked", 7)]);
    }

    #[test]
    fn invalid_slots_are_rejected() {
        for bad in [row(5, 4, "h", 1), row(0, 16_384, "h", 1), row(0, 1, "h", 70_000), Value::Nil] {
            assert_eq!(ranges(&Value::Array(vec![bad]), "asked"), None);
        }
    }
}
