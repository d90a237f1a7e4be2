//! A manual wall clock for a real server: libfaketime, which reads the time from a file.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::Skip;

pub(super) const COMPONENT: &str = "libfaketime";

const LIBRARY: &str = "faketime/libfaketime.so.1";

/// Folders of libfaketime in distributions, possibly within one per architecture.
const LIBRARY_FOLDERS: &[&str] = &["/usr/lib", "/usr/lib64", "/usr/local/lib"];

/// The wall clock of one server. Clones move the same clock.
///
/// Time does not advance between calls: after `set(t)`, `TIME` returns `t`, in scripts too. Redis
/// stores expiry in milliseconds: a key that expires at millisecond `m` exists through `m` and is
/// gone at `m + 1`. Timers of the server (event loop, timeouts) run in real time.
#[derive(Debug, Clone)]
pub struct FakeClock {
    file: PathBuf,
    now: Arc<Mutex<u64>>,
}

// === impl FakeClock ===

impl FakeClock {
    pub(super) fn new(folder: &Path, unix_micros: u64) -> Self {
        let clock = Self { file: folder.join("clock"), now: Arc::new(Mutex::new(unix_micros)) };
        clock.set(unix_micros);
        clock
    }

    /// Sets the time of the server, in microseconds since 1970.
    ///
    /// The next command sees it.
    ///
    /// # Panics
    ///
    /// If the server was dropped.
    #[track_caller]
    pub fn set(&self, unix_micros: u64) {
        self.write(&mut self.lock(), unix_micros);
    }

    /// Advances the time of the server, in whole microseconds.
    ///
    /// # Panics
    ///
    /// If the server was dropped.
    #[track_caller]
    pub fn advance(&self, by: Duration) {
        let mut now = self.lock();
        let later = *now + by.as_micros() as u64;
        self.write(&mut now, later);
    }

    /// The time of the server, in microseconds since 1970.
    pub fn now(&self) -> u64 {
        *self.lock()
    }

    #[track_caller]
    fn write(&self, now: &mut u64, unix_micros: u64) {
        let (seconds, micros) = (unix_micros / 1_000_000, unix_micros % 1_000_000);
        let next = self.file.with_extension("next");
        // libfaketime parses the fraction as a double and truncates it to nanoseconds: .000511
        // would become 510,999 ns. Add half a microsecond.
        fs::write(&next, format!("{seconds}.{micros:06}5\n"))
            // Atomic rename: the server must not read a partial line.
            .and_then(|()| fs::rename(&next, &self.file))
            .expect("write the clock of a server that still exists");
        *now = unix_micros;
    }

    /// Makes the server of `command` use this clock.
    pub(super) fn govern(&self, command: &mut Command, library: &Path) {
        command
            // The allocator of libc instead of jemalloc, which asks for the time before libfaketime
            // is initialized.
            .env("LD_PRELOAD", format!("{}:libc.so.6", library.display()))
            .env("FAKETIME_TIMESTAMP_FILE", &self.file)
            .env("FAKETIME_FMT", "%s")
            .env("FAKETIME_NO_CACHE", "1")
            // The event loop uses the monotonic clock. Versions differ in the name of the variable.
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .env("DONT_FAKE_MONOTONIC", "1")
            .env("TZ", "UTC");
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Environment variables for a program whose wall clock is off by this many seconds. Its timers run
/// in real time.
///
/// # Errors
///
/// [`Skip`] if `libfaketime` is not installed.
pub fn skewed_clock(seconds: i64) -> Result<[(&'static str, String); 4], Skip> {
    // The multi-threaded variant is in the same folder.
    let library = find_library()?.with_file_name("libfaketimeMT.so.1");
    Ok([
        ("LD_PRELOAD", library.display().to_string()),
        ("FAKETIME", format!("{seconds:+}")),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ("DONT_FAKE_MONOTONIC", "1".to_owned()),
    ])
}

pub(super) fn find_library() -> Result<PathBuf, Skip> {
    LIBRARY_FOLDERS
        .iter()
        .flat_map(|folder| [PathBuf::from(folder)].into_iter().chain(folders_in(folder)))
        .map(|folder| folder.join(LIBRARY))
        .find(|library| library.is_file())
        .ok_or_else(|| Skip::new(COMPONENT, "not installed"))
}

/// Removes the shared memory and the semaphore of libfaketime, which a killed process would leak.
///
/// A program that responds has opened both and no longer needs their names.
pub(super) fn forget_shared_memory(pid: u32) {
    for name in ["faketime_shm_", "sem.faketime_sem_"] {
        // Some versions and systems have none.
        let _ = fs::remove_file(format!("/dev/shm/{name}{pid}"));
    }
}

fn folders_in(folder: &str) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}
