use std::fmt;

use jiff::Timestamp;
use serde::Deserialize;

/// A time as servers tell it: seconds since 1970.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct Moment(i64);

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Timestamp::from_second(self.0) {
            Ok(time) => time.fmt(f),
            // Beyond the year 9999.
            Err(_) => self.0.fmt(f),
        }
    }
}
