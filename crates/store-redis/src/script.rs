//! The Lua files, put together into scripts.

use std::sync::LazyLock;

use headgate::Algorithm;

const PRELUDE: &str = include_str!("lua/prelude.lua");
const TOKEN_BUCKET: &str = include_str!("lua/token_bucket.lua");
const LEAKY_BUCKET: &str = include_str!("lua/leaky_bucket.lua");
const FIXED_WINDOW: &str = include_str!("lua/fixed_window.lua");
const CALENDAR: &str = include_str!("lua/calendar.lua");
const SLIDING_WINDOW: &str = include_str!("lua/sliding_window.lua");
const SLIDING_WINDOW_COUNTER: &str = include_str!("lua/sliding_window_counter.lua");
const DRIVER: &str = include_str!("lua/driver.lua");

/// A script and the name by which a server knows it once loaded.
#[derive(Debug)]
pub struct Script {
    source: String,
    sha1: String,
}

impl Script {
    /// The smallest script that knows all of these algorithms: a script's own
    /// functions are made anew on every call.
    pub fn knowing(mut algorithms: impl Iterator<Item = Algorithm>) -> &'static Self {
        let first = algorithms.next();
        match first {
            Some(first) if algorithms.all(|other| other == first) => Self::of(first),
            _ => &MIXED,
        }
    }

    /// The script of one algorithm.
    pub fn of(algorithm: Algorithm) -> &'static Self {
        match algorithm {
            Algorithm::TokenBucket => &SINGLE[0],
            Algorithm::LeakyBucket => &SINGLE[1],
            Algorithm::FixedWindow => &SINGLE[2],
            Algorithm::Calendar => &SINGLE[3],
            Algorithm::SlidingWindow => &SINGLE[4],
            Algorithm::SlidingWindowCounter => &SINGLE[5],
        }
    }

    fn of_files(files: &[&str]) -> Self {
        let source = [&[PRELUDE], files, &[DRIVER]].concat().join("\n");
        let sha1 = redis::Script::new(&source).get_hash().to_owned();
        Self { source, sha1 }
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

static SINGLE: LazyLock<[Script; 6]> = LazyLock::new(|| {
    [
        Script::of_files(&[TOKEN_BUCKET]),
        Script::of_files(&[TOKEN_BUCKET, LEAKY_BUCKET]),
        Script::of_files(&[FIXED_WINDOW]),
        Script::of_files(&[FIXED_WINDOW, CALENDAR]),
        Script::of_files(&[SLIDING_WINDOW]),
        Script::of_files(&[SLIDING_WINDOW_COUNTER]),
    ]
});

static MIXED: LazyLock<Script> = LazyLock::new(|| {
    Script::of_files(&[
        TOKEN_BUCKET,
        LEAKY_BUCKET,
        FIXED_WINDOW,
        CALENDAR,
        SLIDING_WINDOW,
        SLIDING_WINDOW_COUNTER,
    ])
});
