//! Penalties of clients that exceed their limits repeatedly.

use std::{ops::RangeInclusive, time::Duration};

use headgate_guard::Escalation;
use headgate_service_config::Reader;

/// Penalties of clients that exceed their limits repeatedly. Each is twice as long as the one
/// before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PenaltySettings {
    /// The first penalty.
    pub first: Duration,
    /// The longest penalty.
    pub max: Duration,
    /// Time without an offence after which one doubling is taken back.
    pub forgiven_after: Duration,
}

/// Range of a penalty: up to a day.
const PENALTY_SECONDS: RangeInclusive<u64> = 1..=86_400;

/// Range of `forgiven_after`: up to a week.
const FORGIVEN_SECONDS: RangeInclusive<u64> = 1..=604_800;

impl PenaltySettings {
    /// Reads the section `penalty`; without it, or with `null`, there are no penalties.
    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        reader.optional_section("penalty", |penalty| {
            let first = penalty.number("first_seconds", PENALTY_SECONDS, 10);
            let max = penalty.number_not_less_than(
                "first_seconds",
                "max_seconds",
                PENALTY_SECONDS,
                3_600,
            );
            let forgiven = penalty.number("forgiven_after_seconds", FORGIVEN_SECONDS, 600);
            Self {
                first: Duration::from_secs(first),
                max: Duration::from_secs(max),
                forgiven_after: Duration::from_secs(forgiven),
            }
        })
    }

    /// The guards' escalation. Invalid penalties make an invalid document, which is never in force.
    pub(crate) fn escalation(self) -> Option<Escalation> {
        Escalation::new(self.first, self.max, self.forgiven_after).ok()
    }
}
