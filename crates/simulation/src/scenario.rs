//! What is simulated.

use std::time::Duration;

use headgate::{Extra, Limit};

/// A fleet, its traffic and what goes wrong.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Number of instances.
    pub instances: usize,
    /// Number of subjects; their frequencies follow Zipf's law with exponent 1.
    pub subjects: usize,
    /// Decisions per second that each instance is asked for.
    pub rate: f64,
    /// Length of the run.
    pub length: Duration,
    /// The limit of every subject.
    pub limit: Limit,
    /// How much is leased, if anything.
    pub lease: Option<Lease>,
    /// Median of the time that a message takes in one direction.
    pub latency: Duration,
    /// What goes wrong.
    pub faults: Faults,
    /// Everything that is random follows from it.
    pub seed: u64,
}

/// What an instance may take in advance.
#[derive(Clone, Copy, Debug)]
pub struct Lease {
    /// Percentage of the limit.
    pub share_percent: u64,
    /// Longest time to hold it.
    pub hold: Duration,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Messages of a thousand that are lost, in each direction.
    pub lost_per_mille: u64,
    /// Every other instance is cut off from the store in the second quarter of the run.
    pub partition: bool,
    /// Instances that are killed and replaced in each second.
    pub kills_per_second: u64,
}

impl Scenario {
    /// A fleet without leases and faults, 300 microseconds away from its store.
    pub fn new(instances: usize, subjects: usize, rate: f64, limit: Limit) -> Self {
        Self {
            instances,
            subjects,
            rate,
            length: Duration::from_secs(3),
            limit,
            lease: None,
            latency: Duration::from_micros(300),
            faults: Faults::default(),
            seed: 1,
        }
    }

    /// The same fleet with leases.
    #[must_use]
    pub fn leasing(self, share_percent: u64, hold: Duration) -> Self {
        Self { lease: Some(Lease { share_percent, hold }), ..self }
    }

    pub(crate) fn extra(&self) -> Option<Extra> {
        let lease = self.lease?;
        let units = self.limit.capacity() * lease.share_percent / 100;
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        (units > 0).then(|| Extra::new(units, lease.hold))
    }
}
