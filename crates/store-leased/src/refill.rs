//! Asking for more units while some are left.

/// The moment at which a request asks for more, although there are enough units for it.
///
/// The other requests go on with what is left. Without it, all of them would wait for a call
/// whenever nothing is left, and the slowest of a hundred would be one of those.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Refill {
    /// Only when too few are left.
    #[default]
    Never,
    /// When fewer than `below` units are left, or from `at` on by the steady clock.
    Due { below: u64, at: u64 },
    /// A request is about to ask.
    Claimed,
}

impl Refill {
    /// Units that are worth asking for early. With fewer, hardly a request arrives during a call.
    pub(crate) const MIN_UNITS: u64 = 64;

    /// The next refill after a grant of `length` out of a `hold`, which ends at `until`, if `units`
    /// are held then and the store has `remaining`. All times are in microseconds.
    ///
    /// There is one for each grant at most. Where units are scarce there is none: others may need
    /// them more.
    pub(crate) fn after(units: u64, remaining: u64, [until, length, hold]: [u64; 3]) -> Self {
        if units < Self::MIN_UNITS || remaining < units {
            return Self::Never;
        }
        // A grant that a window's end cuts short is not renewed at its end: the next one would end
        // then, too.
        let is_whole = length > hold / 2;
        Self::Due { below: units / 8, at: if is_whole { until - length / 4 } else { u64::MAX } }
    }

    /// Returns `true` if it is time, with `left` units.
    pub(crate) const fn is_due(self, left: u64, now: u64) -> bool {
        matches!(self, Self::Due { below, at } if left < below || now >= at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOLD: u64 = 200_000;

    #[test]
    fn it_is_due_when_an_eighth_is_left_or_a_quarter_of_the_time() {
        let refill = Refill::after(800, 10_000, [1_200_000, HOLD, HOLD]);
        assert!(!refill.is_due(100, 1_000_000));
        assert!(refill.is_due(99, 1_000_000));
        assert!(!refill.is_due(800, 1_149_999));
        assert!(refill.is_due(800, 1_150_000));
    }

    #[test]
    fn few_units_and_the_last_ones_are_used_up_first() {
        assert_eq!(Refill::after(63, 10_000, [1_200_000, HOLD, HOLD]), Refill::Never);
        assert_ne!(Refill::after(64, 10_000, [1_200_000, HOLD, HOLD]), Refill::Never);
        assert_eq!(Refill::after(800, 799, [1_200_000, HOLD, HOLD]), Refill::Never);
        assert_ne!(Refill::after(800, 800, [1_200_000, HOLD, HOLD]), Refill::Never);
    }

    #[test]
    fn a_grant_that_a_window_cuts_short_is_not_renewed_at_its_end() {
        let refill = Refill::after(800, 10_000, [1_020_000, 20_000, HOLD]);
        assert!(!refill.is_due(100, 1_020_000));
        assert!(refill.is_due(99, 1_000_000));
        let [half, more] = [HOLD / 2, HOLD / 2 + 1].map(|length| {
            Refill::after(800, 10_000, [1_000_000 + length, length, HOLD]).is_due(800, 1_100_000)
        });
        assert_eq!([half, more], [false, true]);
    }
}
