//! The units of one grant.

use headgate::Timestamp;

/// Units of one grant that this process may still hand out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hand {
    pub(crate) units: u64,
    /// End of the grant by this process's steady clock, in microseconds.
    ///
    /// It is counted from before the call was sent. The store decided later than that, so it is
    /// never later than the end by the store's clock.
    pub(crate) until: u64,
    /// End of the grant by the store's clock, which names the grant when units go back.
    pub(crate) granted_until: Timestamp,
}
