//! A wall clock that stands still, under a real server: libfaketime, told the time by a file.

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

/// Where distributions keep it: beside the other libraries, or one folder down, by architecture.
const LIBRARY_FOLDERS: &[&str] = &["/usr/lib", "/usr/lib64", "/usr/local/lib"];

/// The wall clock of one server. Clones move the same clock.
///
/// Time stands still between calls, to the microsecond: after `set(t)`, `TIME` answers `t`, in scripts too. Redis keeps
/// expiry in whole milliseconds: a key that expires at millisecond `m` is there through `m` and gone at `m + 1`.
/// Timers inside the server (its event loop, its timeouts) run in real time.
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

    /// Moves the server to this time, in microseconds since 1970, forwards or backwards.
    ///
    /// The server's next command sees it.
    ///
    /// # Panics
    ///
    /// When the server, and the clock with it, was dropped.
    #[track_caller]
    pub fn set(&self, unix_micros: u64) {
        self.write(&mut self.lock(), unix_micros);
    }

    /// Moves the server forwards. What is finer than a microsecond is cut off.
    ///
    /// # Panics
    ///
    /// When the server, and the clock with it, was dropped.
    #[track_caller]
    pub fn advance(&self, by: Duration) {
        let mut now = self.lock();
        let later = *now + by.as_micros() as u64;
        self.write(&mut now, later);
    }

    /// The server's time, in microseconds since 1970.
    pub fn now(&self) -> u64 {
        *self.lock()
    }

    #[track_caller]
    fn write(&self, now: &mut u64, unix_micros: u64) {
        let (seconds, micros) = (unix_micros / 1_000_000, unix_micros % 1_000_000);
        let next = self.file.with_extension("next");
        // libfaketime turns the fraction into a double and cuts it off at a nanosecond: .000511 would become
        // 510,999 ns. Half a microsecond more keeps every value inside its microsecond.
        fs::write(&next, format!("{seconds}.{micros:06}5\n"))
            // Renamed, since the server reads at any moment and must not see half a line.
            .and_then(|()| fs::rename(&next, &self.file))
            .expect("write the clock of a server that still exists");
        *now = unix_micros;
    }

    /// Puts the server that `command` starts under this clock.
    pub(super) fn govern(&self, command: &mut Command, library: &Path) {
        command
            // With libc's allocator ahead of jemalloc: jemalloc asks for the time while libfaketime, which allocates
            // in its own start, is not ready to tell it.
            .env("LD_PRELOAD", format!("{}:libc.so.6", library.display()))
            .env("FAKETIME_TIMESTAMP_FILE", &self.file)
            .env("FAKETIME_FMT", "%s")
            .env("FAKETIME_NO_CACHE", "1")
            // The event loop waits on the monotonic clock; both spellings are in use.
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .env("DONT_FAKE_MONOTONIC", "1")
            .env("TZ", "UTC");
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What to set in the environment of a program whose wall clock is to be off by so many seconds. Its timers
/// run in real time.
///
/// # Errors
///
/// [`Skip`] if `libfaketime` is not installed.
pub fn skewed_clock(seconds: i64) -> Result<[(&'static str, String); 4], Skip> {
    // The one for programs with several threads stands beside the other.
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

/// Removes the names of what libfaketime shares among a program's children, which a killed process leaves behind.
///
/// The program has opened both by the time it answers, and needs the names no more.
pub(super) fn forget_shared_memory(pid: u32) {
    for name in ["faketime_shm_", "sem.faketime_sem_"] {
        // Absent in versions and on systems that keep them elsewhere, or not at all.
        let _ = fs::remove_file(format!("/dev/shm/{name}{pid}"));
    }
}

fn folders_in(folder: &str) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}
