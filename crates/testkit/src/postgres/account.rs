use std::{
    io,
    os::unix::{fs::chown, process::CommandExt},
    path::Path,
    process::Command,
};

use super::programs;
use crate::Skip;

/// The system's user for PostgreSQL, which every package of it creates.
const NAME: &str = "postgres";

/// Whom the server runs as when we are root, since PostgreSQL refuses root.
#[derive(Debug, Clone, Copy)]
pub(super) struct Account {
    uid: u32,
    gid: u32,
}

// === impl Account ===

impl Account {
    /// `None` if the server can run as the user that we are.
    pub(super) fn find() -> Result<Option<Self>, Skip> {
        if id(&["-u"]) != Some(0) {
            return Ok(None);
        }
        match (id(&["-u", NAME]), id(&["-g", NAME])) {
            (Some(uid), Some(gid)) => Ok(Some(Self { uid, gid })),
            _ => {
                Err(programs::skip(format!("it does not run as root, and there is no user {NAME}")))
            }
        }
    }

    /// Gives it a file or folder.
    pub(super) fn own(self, path: &Path) -> io::Result<()> {
        chown(path, Some(self.uid), Some(self.gid))
    }

    /// Runs the command as this user, without root's other groups.
    pub(super) fn run(self, command: &mut Command) {
        command.uid(self.uid).gid(self.gid);
    }
}

/// The number that `id` answers: the standard library has no call for it.
fn id(args: &[&str]) -> Option<u32> {
    let output = Command::new("id").args(args).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}
