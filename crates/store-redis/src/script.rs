//! The Lua files, put together into one script.

use std::sync::LazyLock;

/// The long way: everything that is not in `quick.lua`. It is one function, so
/// that calls which do not need it do not make its parts.
const CAREFULLY: [&str; 8] = [
    include_str!("lua/prelude.lua"),
    include_str!("lua/token_bucket.lua"),
    include_str!("lua/leaky_bucket.lua"),
    include_str!("lua/fixed_window.lua"),
    include_str!("lua/calendar.lua"),
    include_str!("lua/sliding_window.lua"),
    include_str!("lua/sliding_window_counter.lua"),
    include_str!("lua/driver.lua"),
];

static SCRIPT: LazyLock<Script> = LazyLock::new(|| {
    let quickly = include_str!("lua/quick.lua");
    let carefully = CAREFULLY.join("\n");
    let source =
        format!("{quickly}\nlocal function carefully()\n{carefully}\nend\nreturn carefully()\n");
    let sha1 = redis::Script::new(&source).get_hash().to_owned();
    Script { source, sha1 }
});

/// The script that does every verb with every algorithm.
#[derive(Debug)]
pub struct Script {
    source: String,
    sha1: String,
}

impl Script {
    /// The one there is.
    pub fn get() -> &'static Self {
        &SCRIPT
    }

    /// The Lua text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The name for `EVALSHA`.
    pub fn sha1(&self) -> &str {
        &self.sha1
    }
}
