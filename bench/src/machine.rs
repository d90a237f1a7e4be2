//! Versions and hardware of the run.

use std::{fs, process::Command, sync::OnceLock, thread};

pub(crate) fn report() {
    println!("# Headgate's bench\n");
    println!("- commit: {}", commit());
    println!("- machine: {}, {} cores", processor(), cores());
    println!("- load: {} tasks wanted a core in the minute before", load());
    println!("- compiler: {}\n", said_by("rustc", &["--version"]).unwrap_or_else(unknown));
}

/// Number of cores at the start: parts of the bench pin this process to fewer.
pub(crate) fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| thread::available_parallelism().map_or(1, usize::from))
}

/// CPU seconds that a process has used.
pub(crate) fn cpu_seconds(process: u32) -> f64 {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The fields after the program's name, which may contain spaces.
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let ticks = |i: usize| fields.get(i).and_then(|field| field.parse::<f64>().ok());
    (ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0)) / TICKS_PER_SECOND
}

fn commit() -> String {
    let commit = said_by("git", &["rev-parse", "--short", "HEAD"]).unwrap_or_else(unknown);
    let changes = said_by("git", &["status", "--porcelain"]).unwrap_or_default();
    if changes.is_empty() { commit } else { commit + "+dirty" }
}

fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find(|line| line.starts_with("model name"));
    let name = model.and_then(|line| line.split_once(": "));
    name.map_or_else(unknown, |(_, name)| name.to_owned())
}

/// Load of the machine at the start: if it is high, the figures are unreliable.
fn load() -> String {
    let averages = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    averages.split(' ').next().filter(|load| !load.is_empty()).map_or_else(unknown, str::to_owned)
}

fn said_by(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}

fn unknown() -> String {
    "unknown".to_owned()
}
