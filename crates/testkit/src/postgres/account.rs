use std::{
    io,
    os::unix::{fs::chown, process::CommandExt},
    path::Path,
    process::Command,
};

use super::programs;
use crate::Skip;

/// User that PostgreSQL packages create.
const NAME: &str = "postgres";

/// User of the server if this process is root, which PostgreSQL does not allow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Account {
    uid: u32,
    gid: u32,
}

// === impl Account ===

impl Account {
    /// `None` if the server can run as the current user.
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

    /// Makes it the owner of a file or folder.
    pub(super) fn own(self, path: &Path) -> io::Result<()> {
        chown(path, Some(self.uid), Some(self.gid))
    }

    /// Runs the command as this user, without the groups of root.
    pub(super) fn run(self, command: &mut Command) {
        command.uid(self.uid).gid(self.gid);
    }
}

/// Output of `id`, which the standard library has no function for.
fn id(args: &[&str]) -> Option<u32> {
    let output = Command::new("id").args(args).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}
