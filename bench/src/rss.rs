//! Resident memory of this process.

use std::fs;

/// Returns the current resident bytes.
pub(crate) fn now() -> usize {
    read("VmRSS:")
}

/// Returns the peak resident bytes.
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
