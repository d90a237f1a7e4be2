use headgate::Timestamp;

use super::number::number;

/// A point in time as the wire has it.
pub(super) fn time(time: Timestamp) -> prost_types::Timestamp {
    let micros = time.as_micros();
    prost_types::Timestamp {
        seconds: number(micros / 1_000_000),
        nanos: (micros % 1_000_000 * 1000) as i32,
    }
}
