//! What was admitted, against the limit itself.

use headgate::{Batch, Cost, Limit, Outcomes, State, Timestamp, Verb};

use crate::report::Report;

/// The accounts of a run.
#[derive(Debug)]
pub(crate) struct Books {
    pub(crate) report: Report,
    limit: Limit,
    /// The state of each subject after everything that was admitted.
    admitted: Vec<State>,
    /// The state of each subject if one place had decided all requests as they arrived.
    ideal: Vec<State>,
}

impl Books {
    pub(crate) fn new(limit: Limit, subjects: usize) -> Self {
        let states = || vec![State::default(); subjects];
        Self { report: Report::default(), limit, admitted: states(), ideal: states() }
    }

    /// A request arrives.
    pub(crate) fn arrives(&mut self, subject: usize, now: Timestamp) {
        self.report.decisions += 1;
        let admits = self.limit.admit(&mut self.ideal[subject], Cost::ONE, now);
        self.report.ideal += u64::from(admits);
    }

    /// A unit is admitted, by an instance or by the store.
    pub(crate) fn admits(&mut self, subject: usize, now: Timestamp) {
        self.report.admitted += 1;
        if !self.limit.admit(&mut self.admitted[subject], Cost::ONE, now) {
            self.report.over += 1;
        }
    }

    /// The store has decided a call.
    pub(crate) fn decided(&mut self, verb: Verb, batch: &Batch<'_>, outcomes: &Outcomes) {
        match verb {
            Verb::GiveBack => {
                self.report.return_calls += 1;
                self.report.returned_subjects += batch.checks().len() as u64;
                return;
            }
            Verb::Lease => self.report.lease_calls += 1,
            _ => self.report.plain_calls += 1,
        }
        for (check, outcome) in batch.checks().iter().zip(outcomes) {
            let subject = check.key().subject().parse().unwrap_or_default();
            if outcome.allowed {
                self.admits(subject, outcome.at);
            } else {
                let left = self.limit.remaining(&self.admitted[subject], outcome.at);
                let withheld = left.saturating_sub(outcome.remaining);
                self.report.most_withheld = self.report.most_withheld.max(withheld);
            }
        }
    }
}
