//! Units taken for a batch that is not decided yet.

use headgate::Limit;
use smallvec::SmallVec;

use crate::{fingerprint::Fingerprint, hand::Hand, holdings::Holdings};

/// Units taken from what is held for a batch. Unless the batch is admitted, they are put back, also
/// if its caller hangs up.
pub(crate) struct Taken<'s> {
    holdings: &'s Holdings,
    hands: SmallVec<[(Fingerprint, &'s Limit, Hand); 2]>,
}

impl<'s> Taken<'s> {
    pub(crate) fn none(holdings: &'s Holdings) -> Self {
        Self { holdings, hands: SmallVec::new() }
    }

    pub(crate) fn add(&mut self, subject: Fingerprint, limit: &'s Limit, hand: Hand) {
        self.hands.push((subject, limit, hand));
    }

    /// The batch is admitted: the units are used.
    pub(crate) fn keep(mut self) {
        self.hands.clear();
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        for (subject, limit, hand) in self.hands.drain(..) {
            self.holdings.with(subject, |holding| holding.put_back(limit, hand));
        }
    }
}
