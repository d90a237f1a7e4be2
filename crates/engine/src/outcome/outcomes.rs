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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Timestamp;

    /// An admission that can be told from others by what is left.
    fn outcome(remaining: u64) -> Outcome {
        Outcome::admission(10, remaining, Duration::ZERO, Timestamp::from_micros(0))
    }

    fn left<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Vec<u64> {
        outcomes.into_iter().map(|outcome| outcome.remaining).collect()
    }

    #[test]
    fn answers_keep_their_order_however_many_there_are() {
        for count in 0..5 {
            let expected: Vec<u64> = (0..count).collect();
            let mut outcomes = Outcomes::new();
            for remaining in 0..count {
                outcomes.push(outcome(remaining));
            }
            assert_eq!(left(&outcomes), expected);
            assert_eq!((0..count).map(outcome).collect::<Outcomes>(), outcomes);
            assert_eq!(left(&outcomes.clone().into_vec()), expected);
            let by_value = outcomes.into_iter();
            assert_eq!(by_value.len(), expected.len());
            assert_eq!(left(&by_value.collect::<Outcomes>()), expected);
        }
    }

    #[test]
    fn answers_can_be_added_and_changed() {
        let mut outcomes = Outcomes::from(outcome(1));
        outcomes.extend([outcome(2), outcome(3)]);
        for outcome in &mut outcomes {
            outcome.remaining *= 2;
        }
        outcomes[0].remaining += 1;
        assert_eq!(left(&outcomes), [3, 4, 6]);
    }
}
