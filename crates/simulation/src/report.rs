//! What a run has shown.

/// What a run has shown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    /// Requests that arrived.
    pub decisions: u64,
    /// Units that were admitted.
    pub admitted: u64,
    /// Units that were admitted although the limit did not.
    pub over: u64,
    /// Units that the limit would have admitted at one place, at the same arrivals.
    pub ideal: u64,
    /// Requests without an answer: the failure policy decides them.
    pub unanswered: u64,
    /// Requests that waited for the store.
    pub delayed: u64,
    /// Calls to the store that grant nothing.
    pub plain_calls: u64,
    /// Calls to the store that may grant units.
    pub lease_calls: u64,
    /// Calls to the store that give units back.
    pub return_calls: u64,
    /// Subjects in the calls that give units back.
    pub returned_subjects: u64,
    /// Most units that the store withheld at a denial: what it had less than the limit itself.
    pub most_withheld: u64,
}

impl Report {
    /// Calls to the store.
    pub const fn calls(&self) -> u64 {
        self.plain_calls + self.lease_calls + self.return_calls
    }

    /// Calls to the store for each decision.
    pub fn calls_per_decision(&self) -> f64 {
        self.calls() as f64 / self.decisions as f64
    }

    /// The part that was not admitted although one place would have, in percent.
    pub fn under_percent(&self) -> f64 {
        100.0 * (self.ideal as f64 - self.admitted as f64) / self.ideal as f64
    }
}
