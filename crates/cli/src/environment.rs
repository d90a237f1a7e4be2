use std::{env, ffi::OsString};

/// Returns the environment. Values that are not UTF-8 are converted lossily rather than skipped.
pub(crate) fn variables() -> impl Iterator<Item = (String, String)> {
    let text = |value: OsString| value.to_string_lossy().into_owned();
    env::vars_os().map(move |(name, value)| (text(name), text(value)))
}
