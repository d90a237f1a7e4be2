//! The number of files that the process may open, which bounds that of connections.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::warn;

use crate::Bounds;

/// Files beside client connections: the database, Redis, the standard streams, listeners.
const OTHER_FILES: u64 = 256;

impl Bounds {
    /// Lowers `max_connections` to what the process may open, so that idle connections are closed
    /// to accept others before files run out, for the database, too.
    ///
    /// First raises the limit of the process, within its hard limit.
    #[must_use]
    pub fn within_open_files(self) -> Self {
        let wanted = self.max_connections as u64;
        let Some(files) = raised(wanted.saturating_add(OTHER_FILES)) else {
            return self;
        };
        let room = room(files);
        if room >= wanted {
            return self;
        }
        warn!(
            open_files = files,
            "serving at most {room} connections at a time instead of {wanted}: raise the limit of \
             open files (ulimit -n, LimitNOFILE= of systemd)"
        );
        Self { max_connections: room as usize, ..self }
    }
}

/// Number of connections for which a process that may open this many `files` has room.
fn room(files: u64) -> u64 {
    files.saturating_sub(OTHER_FILES).max(files / 2).max(1)
}

/// Raises the limit to `wanted` if it is lower. Returns the limit in force, or `None` if there is
/// none.
fn raised(wanted: u64) -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let current = current?;
    let raised = maximum.map_or(wanted, |maximum| wanted.min(maximum));
    if raised <= current {
        return Some(current);
    }
    match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }) {
        Ok(()) => Some(raised),
        Err(_) => Some(current),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_files_are_left_for_others() {
        assert_eq!([20_000, 1024, 512, 300, 1].map(room), [19_744, 768, 256, 150, 1]);
    }
}
