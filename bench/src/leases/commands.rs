//! The calls that Redis has executed, by its own count.

use headgate_testkit::Redis;

/// Script calls, and the time that Redis took for them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Commands {
    pub(super) calls: f64,
    pub(super) micros: f64,
}

impl Commands {
    pub(super) fn read(redis: &Redis) -> Self {
        let info = redis.cli(&["INFO", "commandstats"]);
        let mut all = Self::default();
        for line in info.lines().filter(|line| line.starts_with("cmdstat_eval")) {
            all.calls += field(line, "calls=");
            all.micros += field(line, "usec=");
        }
        all
    }

    pub(super) fn since(self, earlier: Self) -> Self {
        Self { calls: self.calls - earlier.calls, micros: self.micros - earlier.micros }
    }
}

/// A line is `cmdstat_evalsha:calls=3,usec=120,usec_per_call=40.00,...`.
fn field(line: &str, name: &str) -> f64 {
    let found = line.split([':', ',']).find_map(|field| field.strip_prefix(name));
    found.and_then(|number| number.trim().parse().ok()).unwrap_or_default()
}
