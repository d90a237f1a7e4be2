//! The limiters under test, behind one trait.

use std::time::Duration;

use crate::{
    contestants::{Governor, Limitador, Ours, Throttlecrab},
    stream::Keys,
};

/// A limiter under test.
pub(crate) trait Contestant: Send + Sync {
    /// Decides on every key, taking `cost` each; returns the number admitted.
    ///
    /// The loop is the implementor's, so that no decision pays for a virtual call.
    fn decide(&self, keys: Keys<'_>, cost: u32) -> usize;
}

/// The limit of every key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quota {
    pub(crate) count: u32,
    pub(crate) period: Duration,
    pub(crate) burst: u32,
}

/// The limiters by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entrant {
    Ours,
    Governor,
    Throttlecrab,
    Limitador,
}

impl Entrant {
    pub(crate) const ALL: [Self; 4] =
        [Self::Ours, Self::Governor, Self::Throttlecrab, Self::Limitador];

    pub(crate) const RIVALS: [Self; 3] = [Self::Governor, Self::Throttlecrab, Self::Limitador];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ours => "headgate",
            Self::Governor => "governor",
            Self::Throttlecrab => "throttlecrab",
            Self::Limitador => "limitador",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|entrant| entrant.name() == name)
    }

    /// Creates an empty limiter with room for `subjects`.
    pub(crate) fn build(self, quota: Quota, subjects: usize) -> Box<dyn Contestant> {
        match self {
            Self::Ours => Box::new(Ours::new(quota, subjects)),
            Self::Governor => Box::new(Governor::new(quota)),
            Self::Throttlecrab => Box::new(Throttlecrab::new(quota, subjects)),
            Self::Limitador => Box::new(Limitador::new(quota, subjects)),
        }
    }
}
