//! Memory of an idle server.

use std::{fs, time::Duration};

use headgate_testkit::wait_until;

use crate::harness::{Server, http};

/// Kibibytes of a field of `/proc/PID/smaps_rollup`.
fn kibibytes(smaps: &str, field: &str) -> u64 {
    let line = smaps.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let amount = line.and_then(|line| line.trim().strip_suffix(" kB"));
    amount.and_then(|amount| amount.parse().ok()).expect(field)
}

/// Returns true if the kernel gives huge pages to programs that do not request them.
fn huge_pages_are_forced() -> bool {
    let setting = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    setting.is_ok_and(|setting| setting.contains("[always]"))
}

/// Only anonymous memory counts: allocations, data built at the start, and stacks. The mapped part
/// of the binary does not, because it is several times as large in a debug build.
#[test]
fn an_idle_server_takes_little_memory() {
    const MOST_KIB: u64 = 8 * 1024;
    // Each thread needs memory: run as many as on a small machine.
    let mut variables = vec![("HEADGATE__SERVER__WORKERS", "2"), ("TOKIO_WORKER_THREADS", "2")];
    if huge_pages_are_forced() {
        variables.push(("MIMALLOC_ALLOW_THP", "0"));
    }
    let server = Server::start(&variables);
    let smaps = fs::read_to_string(format!("/proc/{}/smaps_rollup", server.id())).unwrap();
    assert!(kibibytes(&smaps, "Anonymous") <= MOST_KIB, "{smaps}");
    // An allocator that requests huge pages takes 2 MiB for each that it touches.
    assert_eq!(kibibytes(&smaps, "AnonHugePages"), 0, "{smaps}");
    let ready = || http(&server, "GET /readyz", &[], "").contains(r#""status":"ready""#);
    assert!(wait_until(Duration::from_secs(120), ready));
}
