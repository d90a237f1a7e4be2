//! Measures memory in fresh processes.

use std::{
    env,
    process::{Command, Stdio},
};

use crate::{contestant::Entrant, flood, memory};

/// The hidden first argument that makes this program such a process.
pub(crate) const ARGUMENT: &str = "--measure";

/// Runs the measurement `what` in a new process; returns the numbers it printed.
pub(crate) fn ask(what: &str) -> Vec<usize> {
    let program = env::current_exe().expect("a program knows its own path");
    let mut command = Command::new(program);
    command.args([ARGUMENT, what]).stderr(Stdio::inherit());
    // Use the allocator's defaults.
    for (name, _) in env::vars_os() {
        let tunes = name.to_str().is_some_and(|name| name.starts_with("MALLOC_"));
        if tunes || name == "GLIBC_TUNABLES" {
            command.env_remove(name);
        }
    }
    let output = command.output().expect("the program starts once more");
    assert!(output.status.success(), "measuring {what}: {}", output.status);
    let text = String::from_utf8_lossy(&output.stdout);
    text.split_whitespace().map(|word| word.parse().expect("numbers")).collect()
}

/// Runs the measurement `what` in this process and prints its numbers.
pub(crate) fn answer(what: &str) {
    if what == flood::MEASUREMENT {
        let [before, peak, after] = flood::measure();
        println!("{before} {peak} {after}");
    } else {
        let entrant = Entrant::named(what).expect("an entrant's name");
        println!("{}", memory::measure(entrant));
    }
}
