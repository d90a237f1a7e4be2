//! What this process has in memory.

use std::fs;

/// Bytes that are resident now.
pub(crate) fn now() -> usize {
    read("VmRSS:")
}

/// The most bytes that were ever resident.
pub(crate) fn peak() -> usize {
    read("VmHWM:")
}

fn read(field: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("Linux tells a process its memory");
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix(field)?.trim().strip_suffix(" kB")?.parse().ok());
    kilobytes.map_or_else(|| panic!("no {field} in /proc/self/status"), |kb: usize| kb * 1024)
}
