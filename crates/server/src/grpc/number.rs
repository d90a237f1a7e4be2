/// A number as the wire has it. No count of ours is larger than it can be there.
pub(super) fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
