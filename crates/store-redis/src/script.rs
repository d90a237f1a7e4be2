//! The Lua files, concatenated to one script.

use std::sync::LazyLock;

/// Everything that is not in `fast_path.lua` and `reservation_path.lua`. It is wrapped in one
/// function, so that calls on the fast paths do not create the functions in it.
const SLOW_PATH: [&str; 9] = [
    include_str!("lua/prelude.lua"),
    include_str!("lua/token_bucket.lua"),
    include_str!("lua/leaky_bucket.lua"),
    include_str!("lua/fixed_window.lua"),
    include_str!("lua/calendar.lua"),
    include_str!("lua/sliding_window.lua"),
    include_str!("lua/sliding_window_counter.lua"),
    include_str!("lua/concurrency.lua"),
    include_str!("lua/slow_path.lua"),
];

static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(""));

static EXISTING_KEYS: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("lua/existing_keys.lua")));

/// The script that implements every verb for every algorithm.
#[derive(Debug)]
pub struct Script {
    source: String,
    sha1: String,
}

impl Script {
    fn new(prologue: &str) -> Self {
        let fast_path = concat!(
            include_str!("lua/fast_path.lua"),
            "\n",
            include_str!("lua/reservation_path.lua")
        );
        let slow_path = SLOW_PATH.join("\n");
        let source = format!(
            "{prologue}{fast_path}\nlocal function slow_path()\n{slow_path}\nend\nreturn slow_path()\n"
        );
        let sha1 = redis::Script::new(&source).get_hash().to_owned();
        Self { source, sha1 }
    }

    /// The usual script.
    pub fn get() -> &'static Self {
        &SCRIPT
    }

    /// The script for a server that is out of memory: it decides for keys that exist.
    pub(crate) fn for_existing_keys() -> &'static Self {
        &EXISTING_KEYS
    }

    /// The Lua source.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The digest for `EVALSHA`.
    pub fn sha1(&self) -> &str {
        &self.sha1
    }
}
