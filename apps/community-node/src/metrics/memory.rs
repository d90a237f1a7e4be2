//! Resident memory of the process.

/// Resident bytes, where the system reports them.
pub(super) fn resident_bytes() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1_024)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn a_process_has_more_than_a_mebibyte() {
        assert!(super::resident_bytes().unwrap() > 1 << 20);
    }
}
