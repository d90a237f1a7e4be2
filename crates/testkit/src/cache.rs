//! Tools that `scripts/install-test-deps` installs.

use std::{env, path::PathBuf};

/// The folder of a tool. It may not exist.
pub(crate) fn tool(name: &str) -> Option<PathBuf> {
    Some(cache_folder()?.join("headgate/tools").join(name))
}

/// `${XDG_CACHE_HOME:-$HOME/.cache}`, as in the script.
fn cache_folder() -> Option<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))
}
