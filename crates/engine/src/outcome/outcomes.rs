//! The answers to a batch.

use std::ops::{Deref, DerefMut};

use smallvec::SmallVec;

use crate::Outcome;

/// The answers to a [`Batch`](crate::Batch), in its order. Up to two are stored without an
/// allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcomes(SmallVec<[Outcome; 2]>);

/// Iterator over the [`Outcome`]s of an [`Outcomes`], by value.
#[derive(Debug)]
pub struct IntoIter(smallvec::IntoIter<[Outcome; 2]>);

// === impl Outcomes ===

impl Outcomes {
    /// No answers yet.
    #[inline]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends the answer to the next check.
    #[inline]
    pub fn push(&mut self, outcome: Outcome) {
        self.0.push(outcome);
    }

    /// The answers as a `Vec`.
    pub fn into_vec(self) -> Vec<Outcome> {
        self.0.into_vec()
    }
}

impl Deref for Outcomes {
    type Target = [Outcome];

    #[inline]
    fn deref(&self) -> &[Outcome] {
        &self.0
    }
}

impl DerefMut for Outcomes {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Outcome] {
        &mut self.0
    }
}

impl From<Outcome> for Outcomes {
    #[inline]
    fn from(outcome: Outcome) -> Self {
        Self::from_iter([outcome])
    }
}

impl FromIterator<Outcome> for Outcomes {
    #[inline]
    fn from_iter<I: IntoIterator<Item = Outcome>>(outcomes: I) -> Self {
        Self(SmallVec::from_iter(outcomes))
    }
}

impl Extend<Outcome> for Outcomes {
    fn extend<I: IntoIterator<Item = Outcome>>(&mut self, outcomes: I) {
        self.0.extend(outcomes);
    }
}

impl IntoIterator for Outcomes {
    type Item = Outcome;
    type IntoIter = IntoIter;

    #[inline]
    fn into_iter(self) -> IntoIter {
        IntoIter(self.0.into_iter())
    }
}

impl<'a> IntoIterator for &'a Outcomes {
    type Item = &'a Outcome;
    type IntoIter = std::slice::Iter<'a, Outcome>;

    #[inline]
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a mut Outcomes {
    type Item = &'a mut Outcome;
    type IntoIter = std::slice::IterMut<'a, Outcome>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

// === impl IntoIter ===

impl Iterator for IntoIter {
    type Item = Outcome;

    #[inline]
    fn next(&mut self) -> Option<Outcome> {
        self.0.next()
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for IntoIter {}
