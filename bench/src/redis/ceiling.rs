//! Maximum throughput of Redis: our script and a minimal client.

use std::{
    ffi::OsString,
    os::unix::ffi::OsStringExt as _,
    process::{Command, Stdio},
};

use headgate::{Timestamp, Verb};
use headgate_store_redis::bench::{Call, Script};
use headgate_testkit::Redis;

use super::{Load, SUBJECTS, client};

/// `redis-benchmark` with the commands of our store, except that zero bytes are replaced: see
/// [`replace_zeros`].
#[derive(Debug)]
pub(crate) struct Ceiling {
    port: u16,
    evalsha: Vec<OsString>,
}

impl Ceiling {
    /// redis-benchmark replaces this by twelve random digits.
    const RANDOM: &str = "__rand_int__";

    pub(crate) fn new(redis: &Redis) -> Result<Self, String> {
        let version = Command::new("redis-benchmark").arg("--version").output();
        version.map_err(|error| format!("redis-benchmark: {error}"))?;

        let limit = client::limit();
        let key = client::key(Self::RANDOM);
        let checks = [client::check(&key, &limit)];
        let call = Call::new(Verb::Acquire, &checks, Timestamp::default());
        let mut args = call.args();
        let stand_in = args.last_mut().map(|word| replace_zeros(word)).unwrap_or_default();
        let undo = format!("ARGV[#ARGV] = string.gsub(ARGV[#ARGV], '\\{stand_in}', '\\0')");
        let sha1 = redis.cli(&["SCRIPT", "LOAD", &format!("{undo}\n{}", Script::get().source())]);
        let mut words = vec![b"EVALSHA".to_vec(), sha1.into(), checks.len().to_string().into()];
        words.extend(call.keys());
        words.extend(args);
        let evalsha = words.into_iter().map(OsString::from_vec).collect();
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

/// Replaces every zero byte by one that is not in the word and has no meaning in a Lua pattern:
/// neither the arguments nor the input of redis-benchmark can contain zero bytes. The script
/// restores them, which takes half a microsecond per call.
fn replace_zeros(word: &mut [u8]) -> u8 {
    let stand_in = (128..=u8::MAX).find(|byte| !word.contains(byte)).expect("a short word");
    word.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = stand_in);
    stand_in
}

/// Returns the second column of the last line; the first, the command, may contain commas.
fn rate(csv: &str) -> Option<f64> {
    let mut columns = csv.lines().last()?.split("\",\"");
    columns.nth(1)?.trim_matches('"').parse().ok()
}
