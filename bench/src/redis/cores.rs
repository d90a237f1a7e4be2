//! Gives server and clients a core each, so that figures repeat.

use std::process::{self, Command, Stdio};

use crate::machine;

/// Pins the server to the first core, and this process with its children to the second. Returns the
/// result for the report.
pub(crate) fn separate(server: u32) -> &'static str {
    if machine::cores() < 2 {
        "server and client share the only core"
    } else if pin(server, "0") && pin(process::id(), "1") {
        "server and client on a core each"
    } else {
        "server and client wherever the scheduler puts them (no taskset)"
    }
}

/// Unpins this process and its future children.
pub(crate) fn share() {
    pin(process::id(), &format!("0-{}", machine::cores() - 1));
}

fn pin(process: u32, core: &str) -> bool {
    let mut taskset = Command::new("taskset");
    taskset.args(["--all-tasks", "--cpu-list", "--pid", core, &process.to_string()]);
    taskset.stdout(Stdio::null()).stderr(Stdio::null());
    taskset.status().is_ok_and(|status| status.success())
}
