//! `process_*`: the metrics of the process that Prometheus clients share, read from `/proc`.
//!
//! Elsewhere than on Linux there are none. Hand-written because the `process` feature of
//! `prometheus` brings `procfs`, for four small files.

use std::{fs, path::Path};

use prometheus::{
    Counter, Error, Gauge, IntGauge,
    core::{Collector, Desc},
    proto::MetricFamily,
};

/// Ticks per second of the times in `/proc`: a constant of Linux's interface to programs on every
/// architecture that Rust's standard library supports.
const TICKS_PER_SECOND: f64 = 100.0;

/// Collects the metrics of this process when metrics are scraped.
pub(super) struct ProcessCollector {
    resident: IntGauge,
    virtual_memory: IntGauge,
    open_fds: IntGauge,
    max_fds: IntGauge,
    threads: IntGauge,
    started: Gauge,
}

/// One reading.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Reading {
    cpu_seconds: f64,
    resident_bytes: i64,
    virtual_bytes: i64,
    open_fds: i64,
    /// `None` without a limit.
    max_fds: Option<i64>,
    threads: i64,
    /// In seconds since 1970.
    started: f64,
}

// === impl ProcessCollector ===

impl ProcessCollector {
    pub(super) fn new() -> Result<Self, Error> {
        let gauge = |name: &str, help: &str| IntGauge::new(name, help);
        Ok(Self {
            resident: gauge("process_resident_memory_bytes", "Resident memory in bytes.")?,
            virtual_memory: gauge("process_virtual_memory_bytes", "Virtual memory in bytes.")?,
            open_fds: gauge("process_open_fds", "Open file descriptors.")?,
            max_fds: gauge("process_max_fds", "Maximum number of open file descriptors.")?,
            threads: gauge("process_threads", "Threads of the process.")?,
            started: Gauge::new(
                "process_start_time_seconds",
                "Start time of the process, in seconds since 1970.",
            )?,
        })
    }
}

impl Collector for ProcessCollector {
    fn desc(&self) -> Vec<&Desc> {
        [
            self.resident.desc(),
            self.virtual_memory.desc(),
            self.open_fds.desc(),
            self.max_fds.desc(),
            self.threads.desc(),
            self.started.desc(),
        ]
        .concat()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let Some(now) = Reading::of(Path::new("/proc")) else { return Vec::new() };
        self.resident.set(now.resident_bytes);
        self.virtual_memory.set(now.virtual_bytes);
        self.open_fds.set(now.open_fds);
        self.threads.set(now.threads);
        self.started.set(now.started);
        let mut families = [
            self.resident.collect(),
            self.virtual_memory.collect(),
            self.open_fds.collect(),
            self.threads.collect(),
            self.started.collect(),
        ]
        .concat();
        if let Some(max) = now.max_fds {
            self.max_fds.set(max);
            families.extend(self.max_fds.collect());
        }
        // The kernel counts; a counter is created for each scrape.
        if let Ok(cpu) = Counter::new("process_cpu_seconds_total", "User and system CPU time.") {
            cpu.inc_by(now.cpu_seconds);
            families.extend(cpu.collect());
        }
        families
    }
}

// === impl Reading ===

impl Reading {
    /// Reads the files of this process; `None` if one is missing or unreadable.
    fn of(proc: &Path) -> Option<Self> {
        let read = |name: &str| fs::read_to_string(proc.join(name)).ok();
        let (status, limits) = (read("self/status")?, read("self/limits")?);
        let stat = read("self/stat")?;
        // The second field is the program's name in parentheses, which may contain anything.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let ticks = |place: usize| fields.get(place)?.parse::<f64>().ok();
        let booted: f64 = after(&read("stat")?, "btime ")?.parse().ok()?;
        let kilobytes = |name| Some(after(&status, name)?.parse::<i64>().ok()? * 1024);
        Some(Self {
            cpu_seconds: (ticks(11)? + ticks(12)?) / TICKS_PER_SECOND,
            resident_bytes: kilobytes("VmRSS:")?,
            virtual_bytes: kilobytes("VmSize:")?,
            open_fds: open_fds(&proc.join("self/fd"))?,
            max_fds: after(&limits, "Max open files")?.parse().ok(),
            threads: after(&status, "Threads:")?.parse().ok()?,
            started: booted + ticks(19)? / TICKS_PER_SECOND,
        })
    }
}

/// Returns the first word after `name` at the beginning of a line.
fn after<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_ascii_whitespace().next()
}

/// Returns the number of entries of `folder`.
fn open_fds(folder: &Path) -> Option<i64> {
    // Since Linux 6.2 the folder's size is the number of its entries, which saves listing as many
    // as there are connections.
    let size = fs::metadata(folder).ok()?.len();
    if size > 0 {
        return i64::try_from(size).ok();
    }
    // Listing opens one more.
    let listed = i64::try_from(fs::read_dir(folder).ok()?.count()).ok()?;
    Some(listed - 1)
}

#[cfg(test)]
mod tests {
    use std::env;

    use super::*;

    #[test]
    fn reads_a_process_whose_name_has_spaces_and_parentheses() {
        let folder = tempfile::tempdir().unwrap();
        let proc = folder.path();
        fs::create_dir_all(proc.join("self/fd")).unwrap();
        let write = |name: &str, text: &str| fs::write(proc.join(name), text).unwrap();
        write("stat", "cpu  1 2 3\nbtime 1700000000\nprocesses 9\n");
        write(
            "self/stat",
            "7 (a) b (c) S 1 7 7 0 -1 4194560 900 0 0 0 150 50 0 0 20 0 6 0 1234 5000000 700 1\n",
        );
        write(
            "self/status",
            "Name:\ta) b (c\nVmSize:\t    2048 kB\nVmRSS:\t  512 kB\nThreads:\t6\n",
        );
        write("self/limits", "Limit  Soft  Hard  Units\nMax open files   1024   4096   files\n");
        let reading = Reading::of(proc).unwrap();
        assert!((reading.cpu_seconds - 2.0).abs() < 1e-9, "{reading:?}");
        assert!((reading.started - 1_700_000_012.34).abs() < 1e-6, "{reading:?}");
        assert_eq!((reading.resident_bytes, reading.virtual_bytes), (512 * 1024, 2048 * 1024));
        assert_eq!((reading.threads, reading.max_fds), (6, Some(1024)));

        write("self/limits", "Max open files   unlimited   unlimited   files\n");
        assert_eq!(Reading::of(proc).unwrap().max_fds, None);
        fs::remove_file(proc.join("self/status")).unwrap();
        assert_eq!(Reading::of(proc), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn counts_the_descriptors_of_this_process() {
        let before = Reading::of(Path::new("/proc")).unwrap();
        let program = env::current_exe().unwrap();
        let files: Vec<_> = (0..50).map(|_| fs::File::open(&program).unwrap()).collect();
        let after = Reading::of(Path::new("/proc")).unwrap();
        // Other tests of this process open files, too, but not as many.
        assert!(after.open_fds >= before.open_fds + 40, "{before:?} {after:?}");
        assert!(after.max_fds.is_none_or(|max| max >= after.open_fds), "{after:?}");
        assert!(after.resident_bytes > 0 && after.virtual_bytes > after.resident_bytes);
        assert!(after.threads >= 1 && after.started > 1.5e9);
        drop(files);
    }
}
