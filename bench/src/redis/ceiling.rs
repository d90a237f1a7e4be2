//! What Redis reaches with our script when the client does nothing but ask.

use std::process::{Command, Stdio};

use headgate::{Timestamp, Verb};
use headgate_store_redis::{Script, call::Call};
use headgate_testkit::Redis;

use super::{Load, SUBJECTS, client};

/// `redis-benchmark` that sends what our store sends.
#[derive(Debug)]
pub(crate) struct Ceiling {
    port: u16,
    evalsha: Vec<String>,
}

impl Ceiling {
    /// What redis-benchmark replaces by twelve random digits.
    const RANDOM: &str = "__rand_int__";

    pub(crate) fn new(redis: &Redis) -> Result<Self, String> {
        let version = Command::new("redis-benchmark").arg("--version").output();
        version.map_err(|error| format!("redis-benchmark: {error}"))?;

        let limit = client::limit();
        let key = client::key(Self::RANDOM);
        let checks = [client::check(&key, &limit)];
        let call = Call::new(Verb::Acquire, &checks, Timestamp::default());
        let sha1 = redis.cli(&["SCRIPT", "LOAD", Script::get().source()]);
        assert_eq!(sha1, Script::get().sha1(), "Redis names scripts as we do");
        let mut evalsha = vec!["EVALSHA".to_owned(), sha1, call.keys().len().to_string()];
        evalsha.extend(call.keys());
        evalsha.extend(call.args());
        Ok(Self { port: redis.port(), evalsha })
    }

    /// Decisions per second.
    pub(crate) fn rate(&self, load: Load) -> f64 {
        let options = [
            ("-p", usize::from(self.port)),
            ("-c", load.connections),
            ("-P", load.pipeline),
            ("-n", load.decisions),
            ("-r", SUBJECTS),
        ];
        let mut command = Command::new("redis-benchmark");
        for (option, value) in options {
            command.args([option, &value.to_string()]);
        }
        command.arg("--csv").args(&self.evalsha).stderr(Stdio::inherit());
        let output = command.output().expect("redis-benchmark started before");
        let text = String::from_utf8_lossy(&output.stdout);
        rate(&text).unwrap_or_else(|| panic!("redis-benchmark said: {text}"))
    }
}

/// The second column of the last line; the first, the command, may hold commas of its own.
fn rate(csv: &str) -> Option<f64> {
    let mut columns = csv.lines().last()?.split("\",\"");
    columns.nth(1)?.trim_matches('"').parse().ok()
}
