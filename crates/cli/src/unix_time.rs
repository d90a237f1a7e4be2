use std::fmt;

use jiff::Timestamp;
use serde::Deserialize;

/// A time in whole seconds since the Unix epoch, printed in RFC 3339.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct UnixTime(i64);

impl fmt::Display for UnixTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Timestamp::from_second(self.0) {
            Ok(time) => time.fmt(f),
            // After the year 9999.
            Err(_) => self.0.fmt(f),
        }
    }
}
