//! Names a set of things that others hold a copy of.

/// Names a set of things that others hold a copy of, such as the rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revision(pub i64);
