use std::{env, ffi::OsString};

/// The environment. A value that is no text cannot be meant for us, but is not overlooked.
pub(crate) fn variables() -> impl Iterator<Item = (String, String)> {
    let text = |value: OsString| value.to_string_lossy().into_owned();
    env::vars_os().map(move |(name, value)| (text(name), text(value)))
}
