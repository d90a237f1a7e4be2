//! The lease of a rule before validation.

use std::time::Duration;

use headgate::{LeasePolicy, LeasePolicyError};
use headgate_admin::{FieldError, FieldReader, Input, InvalidValue};

/// The fields of a lease before validation. A share of 0 turns leases off, whatever the default is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseDraft {
    /// See [`LeasePolicy::share_percent`].
    pub share_percent: Input<i64>,
    /// See [`LeasePolicy::hold_ms`].
    pub hold_ms: Input<i64>,
}

const SHARE: &str = "lease.share_percent";
const HOLD: &str = "lease.hold_ms";
const NUMBER: &str = "a whole number";

/// Reads a lease, and reports all of its errors.
pub(super) fn read(reader: &mut FieldReader, input: Input<LeaseDraft>) -> Input<LeasePolicy> {
    let draft = reader.read("lease", input, "an object with share_percent and hold_ms", Ok);
    let LeaseDraft { share_percent, hold_ms } = match draft {
        Input::Given(draft) => draft,
        Input::Missing => return Input::Missing,
        Input::Null | Input::WrongType(_) => return Input::Null,
    };
    if share_percent == Input::Given(0) {
        // The hold does not matter, but it has to be a number.
        reader.read(HOLD, hold_ms, NUMBER, Ok);
        return Input::Given(LeasePolicy::OFF);
    }
    let share = reader.required(SHARE, share_percent, NUMBER, |share| {
        let share = to_number(share);
        // Each number is validated beside a valid one, so that both are reported.
        LeasePolicy::new(share, LeasePolicy::MIN_HOLD_MS).map(|_| share).map_err(out_of_range)
    });
    let hold = reader.required(HOLD, hold_ms, NUMBER, |hold| {
        let hold = to_number(hold);
        LeasePolicy::new(LeasePolicy::MIN_SHARE_PERCENT, hold).map(|_| hold).map_err(out_of_range)
    });
    let policy = share.zip(hold).and_then(|(share, hold)| LeasePolicy::new(share, hold).ok());
    policy.map_or(Input::Null, Input::Given)
}

/// Reports a hold that is too long for the window.
pub(super) fn check_window(reader: &mut FieldReader, lease: LeasePolicy, window_seconds: u32) {
    let window = Duration::from_secs(window_seconds.into());
    if let Err(error) = lease.for_window(window) {
        let (reason, message) = out_of_range(error);
        reader.add(FieldError { field: HOLD, reason, message });
    }
}

/// Negative numbers are as wrong as too large ones.
fn to_number(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

fn out_of_range(error: LeasePolicyError) -> InvalidValue {
    let off = if error == LeasePolicyError::Share { ", or 0 for no leases" } else { "" };
    ("out_of_range", format!("lease.{error}{off}"))
}

impl From<LeasePolicy> for LeaseDraft {
    fn from(policy: LeasePolicy) -> Self {
        Self {
            share_percent: Input::Given(policy.share_percent().into()),
            hold_ms: Input::Given(policy.hold_ms().into()),
        }
    }
}
