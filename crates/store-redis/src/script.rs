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

static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(""));

static KNOWN_SUBJECTS: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("lua/known_subjects.lua")));

/// The script that does every verb with every algorithm.
#[derive(Debug)]
pub struct Script {
    source: String,
    sha1: String,
}

impl Script {
    fn new(first: &str) -> Self {
        let quickly = include_str!("lua/quick.lua");
        let carefully = CAREFULLY.join("\n");
        let source = format!(
            "{first}{quickly}\nlocal function carefully()\n{carefully}\nend\nreturn carefully()\n"
        );
        let sha1 = redis::Script::new(&source).get_hash().to_owned();
        Self { source, sha1 }
    }

    /// The one that almost every call runs.
    pub fn get() -> &'static Self {
        &SCRIPT
    }

    /// The same for a Redis without memory for new subjects: those that it has go on.
    pub(crate) fn for_known_subjects() -> &'static Self {
        &KNOWN_SUBJECTS
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
