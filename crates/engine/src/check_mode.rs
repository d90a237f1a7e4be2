//! The mode of a check within its batch.

/// The mode of a check within its batch: whether it takes units, and whether its denial blocks the
/// other checks.
///
/// | mode | takes units | its denial blocks the batch |
/// |---|---|---|
/// | [`Required`](Self::Required) | if no check blocks the batch | yes |
/// | [`Probe`](Self::Probe) | never | yes |
/// | [`Optional`](Self::Optional) | if admitted and no check blocks the batch | no |
/// | [`Independent`](Self::Independent) | if admitted | no |
/// | [`Report`](Self::Report) | never | no |
///
/// It is exhaustive on purpose, as [`Verb`](crate::Verb) is: stores implement every mode.
///
/// ```
/// use std::time::Duration;
///
/// use headgate::{Batch, Check, CheckMode, Cost, Key, Limit, Verb};
/// use headgate_store_memory::MemoryStore;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = MemoryStore::default();
/// let limit = Limit::token_bucket(1, Duration::from_secs(60))?;
/// let check = |key| Check::new(Key::new(key).unwrap(), &limit, Cost::ONE).unwrap();
/// let batch = Batch::new([
///     check("enforced"),
///     // A limit on trial: it counts, and its denials have no effect.
///     check("trial").with_mode(CheckMode::Optional),
/// ])?;
/// store.apply_now(Verb::Acquire, &Batch::from(check("trial")));
/// let outcomes = store.apply_now(Verb::Acquire, &batch);
/// assert!(!outcomes[1].allowed, "the trial is used up");
/// assert_eq!(outcomes[0].remaining, 0, "and the other check took its unit");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CheckMode {
    /// Takes units together with the other required checks, all or nothing.
    #[default]
    Required,
    /// Takes no units; its denial still blocks the batch.
    Probe,
    /// Takes units if it is admitted and no check blocks the batch; its own denial blocks nothing.
    Optional,
    /// Takes units if it is admitted, regardless of the other checks; its denial blocks nothing.
    Independent,
    /// Takes no units and blocks nothing.
    Report,
}

impl CheckMode {
    /// Every mode.
    pub const ALL: [Self; 5] =
        [Self::Required, Self::Probe, Self::Optional, Self::Independent, Self::Report];

    /// Returns `true` if its denial blocks the batch.
    pub const fn can_block(self) -> bool {
        matches!(self, Self::Required | Self::Probe)
    }

    /// Returns `true` if another check's denial can prevent it from taking units.
    pub const fn can_be_blocked(self) -> bool {
        matches!(self, Self::Required | Self::Optional)
    }

    /// Returns `true` if it never takes units.
    pub const fn is_read_only(self) -> bool {
        matches!(self, Self::Probe | Self::Report)
    }

    /// Returns `true` if it takes units, given whether its own limit admits it (`allowed`) and
    /// whether every check that [can block](Self::can_block) the batch is admitted (`unblocked`).
    pub const fn takes(self, allowed: bool, unblocked: bool) -> bool {
        match self {
            Self::Required => unblocked,
            Self::Probe | Self::Report => false,
            Self::Optional => allowed && unblocked,
            Self::Independent => allowed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_takes_according_to_its_mode() {
        // (allowed, unblocked)
        let cases = [(true, true), (true, false), (false, true), (false, false)];
        let takes =
            |mode: CheckMode| cases.map(|(allowed, unblocked)| mode.takes(allowed, unblocked));
        assert_eq!(takes(CheckMode::Required), [true, false, true, false]);
        assert_eq!(takes(CheckMode::Optional), [true, false, false, false]);
        assert_eq!(takes(CheckMode::Independent), [true, true, false, false]);
        assert_eq!(takes(CheckMode::Probe), [false; 4]);
        assert_eq!(takes(CheckMode::Report), [false; 4]);
    }

    #[test]
    fn required_checks_and_probes_can_block() {
        let each = |f: fn(CheckMode) -> bool| CheckMode::ALL.map(f);
        assert_eq!(each(CheckMode::can_block), [true, true, false, false, false]);
        assert_eq!(each(CheckMode::can_be_blocked), [true, false, true, false, false]);
        assert_eq!(each(CheckMode::is_read_only), [false, true, false, false, true]);
    }
}
