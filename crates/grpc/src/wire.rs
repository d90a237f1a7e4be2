//! Values that several messages share.

use headgate::{Key, Timestamp};
use tonic::{Response, Status};

use super::error::Violation;

/// Maximum length of an idempotency key, in bytes.
const MAX_REQUEST_ID: usize = 128;

/// What a handler answers.
pub(super) type Answer<T> = Result<Response<T>, Status>;

/// Converts a count, and saturates: no count of ours is as large.
pub(super) fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A point in time.
pub(super) fn time(time: Timestamp) -> prost_types::Timestamp {
    let micros = time.as_micros();
    prost_types::Timestamp {
        seconds: number(micros / 1_000_000),
        nanos: (micros % 1_000_000 * 1000) as i32,
    }
}

/// The subject in a required field.
pub(super) fn subject<'a>(field: &'static str, text: &'a str) -> Result<Key<'a>, Violation> {
    if text.is_empty() {
        return Err(Violation::new(field, format!("{field} is required")));
    }
    Key::new(text).map_err(|error| {
        let error = error.to_string();
        // The engine's message starts with "key"; callers know the field by its own name.
        Violation::new(field, format!("{field}{}", error.strip_prefix("key").unwrap_or(&error)))
    })
}

/// The idempotency key; empty means none.
pub(super) fn request_id(text: &str) -> Result<Option<&str>, Violation> {
    if text.is_empty() {
        return Ok(None);
    }
    if text.len() <= MAX_REQUEST_ID && !text.contains(char::is_control) {
        return Ok(Some(text));
    }
    let message =
        format!("request_id must have 1 to {MAX_REQUEST_ID} bytes and no control characters");
    Err(Violation::new("request_id", message))
}
