use headgate::FailCause;
use prometheus::{IntCounter, IntCounterVec};

/// The label that holds the cause.
pub const REASON: &str = "reason";

/// Counters of degraded answers, one per [`FailCause`].
#[derive(Clone, Debug)]
pub struct ByCause([IntCounter; FailCause::ALL.len()]);

impl ByCause {
    /// Looks up the counters of `family` with these label values; the last label of the family is
    /// [`REASON`].
    pub fn new(family: &IntCounterVec, labels: &[&str]) -> Self {
        let counter =
            |cause: FailCause| family.with_label_values(&[labels, &[cause.name()]].concat());
        Self(FailCause::ALL.map(counter))
    }

    /// Counts one degraded answer.
    pub fn count(&self, cause: FailCause) {
        for (counter, known) in self.0.iter().zip(FailCause::ALL) {
            if known == cause {
                counter.inc();
            }
        }
    }

    /// Number of degraded answers of any cause.
    pub fn total(&self) -> u64 {
        self.0.iter().map(IntCounter::get).sum()
    }
}
