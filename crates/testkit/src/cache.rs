//! Where `scripts/install-test-deps` puts what no package has.

use std::{env, path::PathBuf};

/// The folder of an installed tool, whether or not it is there.
pub(crate) fn tool(name: &str) -> Option<PathBuf> {
    Some(cache_folder()?.join("headgate/tools").join(name))
}

/// As in the script: `${XDG_CACHE_HOME:-$HOME/.cache}`.
fn cache_folder() -> Option<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))
}
