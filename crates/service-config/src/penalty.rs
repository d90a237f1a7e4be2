//! How much longer those wait who are denied again and again.

use std::{ops::RangeInclusive, time::Duration};

use crate::reader::Reader;

/// Penalties for those who are denied again and again. Each is twice as long as the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PenaltySettings {
    /// The first penalty.
    pub first: Duration,
    /// The longest penalty.
    pub max: Duration,
    /// One doubling is taken back after so long without an offence.
    pub forgiven_after: Duration,
}

/// Penalties of up to a day.
const PENALTY_SECONDS: RangeInclusive<u64> = 1..=86_400;

/// Up to a week.
const FORGIVEN_SECONDS: RangeInclusive<u64> = 1..=604_800;

impl PenaltySettings {
    /// Reads the section `penalty`; without it, or with `null`, there are no penalties.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        reader.anything("penalty")?;
        reader.section("penalty", |penalty| {
            let first = penalty.number("first_seconds", PENALTY_SECONDS, 10);
            let max = penalty.number("max_seconds", PENALTY_SECONDS, 3_600);
            let forgiven = penalty.number("forgiven_after_seconds", FORGIVEN_SECONDS, 600);
            if max < first {
                penalty.note("max_seconds", "must not be less than first_seconds");
            }
            Some(Self {
                first: Duration::from_secs(first),
                max: Duration::from_secs(max),
                forgiven_after: Duration::from_secs(forgiven),
            })
        })
    }
}
