use headgate::FailCause;
use prometheus::{IntCounter, IntCounterVec};

/// The label that tells why the store did not answer.
pub(super) const REASON: &str = "reason";

/// Answers that the store did not give, by why it did not: one counter for each reason.
#[derive(Clone)]
pub(super) struct ByCause([IntCounter; FailCause::ALL.len()]);

impl ByCause {
    /// The counters of `family` whose first labels are these; its last label is [`REASON`].
    pub(super) fn new(family: &IntCounterVec, labels: &[&str]) -> Self {
        let counter =
            |cause: FailCause| family.with_label_values(&[labels, &[cause.name()]].concat());
        Self(FailCause::ALL.map(counter))
    }

    pub(super) fn count(&self, cause: FailCause) {
        for (counter, known) in self.0.iter().zip(FailCause::ALL) {
            if known == cause {
                counter.inc();
            }
        }
    }

    pub(super) fn total(&self) -> u64 {
        self.0.iter().map(IntCounter::get).sum()
    }
}
