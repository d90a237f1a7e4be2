//! The buckets of an attribute, by kind and length.

use crate::{
    condition::IndexKey,
    snapshot::shards::{EntryAction, Keyed},
};

/// Which buckets an attribute has, so that others are not looked up.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    name: Box<str>,
    present: usize,
    equals: usize,
    prefixes: Lengths,
    suffixes: Lengths,
    networks: Lengths,
}

/// Lengths, each with the number of buckets that have it.
#[derive(Clone, Debug, Default)]
struct Lengths(Vec<(usize, usize)>);

// === impl Shape ===

impl Shape {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            present: 0,
            equals: 0,
            prefixes: Lengths::default(),
            suffixes: Lengths::default(),
            networks: Lengths::default(),
        }
    }

    pub(super) const fn has_present(&self) -> bool {
        self.present > 0
    }

    pub(super) const fn has_equals(&self) -> bool {
        self.equals > 0
    }

    pub(super) const fn has_networks(&self) -> bool {
        !self.networks.0.is_empty()
    }

    pub(super) fn prefixes(&self) -> impl Iterator<Item = usize> {
        self.prefixes.0.iter().map(|(length, _)| *length)
    }

    pub(super) fn suffixes(&self) -> impl Iterator<Item = usize> {
        self.suffixes.0.iter().map(|(length, _)| *length)
    }

    pub(super) fn networks(&self) -> impl Iterator<Item = usize> {
        self.networks.0.iter().map(|(shape, _)| *shape)
    }

    /// Counts a bucket that was added or removed.
    pub(super) fn count(&mut self, key: Option<IndexKey<'_>>, added: bool) -> EntryAction {
        let one = |count: &mut usize| if added { *count += 1 } else { *count -= 1 };
        match key {
            None => one(&mut self.present),
            Some(IndexKey::Equals(_)) => one(&mut self.equals),
            Some(IndexKey::Prefix(text)) => self.prefixes.count(text.len(), added),
            Some(IndexKey::Suffix(text)) => self.suffixes.count(text.len(), added),
            Some(IndexKey::Network(network)) => self.networks.count(network.shape(), added),
        }
        let lengths = [&self.prefixes, &self.suffixes, &self.networks];
        let is_empty = self.present + self.equals == 0 && lengths.iter().all(|of| of.0.is_empty());
        if is_empty { EntryAction::Remove } else { EntryAction::Keep }
    }
}

impl Keyed for Shape {
    type Key = str;

    fn key(&self) -> Option<&str> {
        Some(&self.name)
    }
}

// === impl Lengths ===

impl Lengths {
    fn count(&mut self, length: usize, added: bool) {
        match (self.0.binary_search_by_key(&length, |(length, _)| *length), added) {
            (Ok(place), true) => self.0[place].1 += 1,
            (Ok(place), false) if self.0[place].1 > 1 => self.0[place].1 -= 1,
            (Ok(place), false) => drop(self.0.remove(place)),
            (Err(place), true) => self.0.insert(place, (length, 1)),
            (Err(_), false) => {}
        }
    }
}
