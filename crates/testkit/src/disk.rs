//! A disk that can be full.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use crate::Skip;

/// Bytes that are written at a time, which is what the system gives out at a time.
const BLOCK: usize = 4096;

/// A small disk of our own, in memory: unmounted when dropped.
#[derive(Debug)]
pub struct SmallDisk {
    folder: TempDir,
}

// === impl SmallDisk ===

impl SmallDisk {
    /// Mounts a disk with room for so many kilobytes.
    ///
    /// # Errors
    ///
    /// [`Skip`] if this user may not mount anything.
    ///
    /// # Panics
    ///
    /// When there is no folder for it.
    pub fn mount(kilobytes: u32) -> Result<Self, Skip> {
        let folder = tempfile::Builder::new().prefix("headgate-disk-").tempdir();
        let folder = folder.expect("a folder to mount the disk in");
        let options = format!("size={kilobytes}k,mode=0755");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(folder.path());
        match mount.output() {
            Ok(output) if output.status.success() => Ok(Self { folder }),
            Ok(output) => {
                Err(Skip::new("mount", String::from_utf8_lossy(&output.stderr).trim().to_owned()))
            }
            Err(error) => Err(Skip::new("mount", error.to_string())),
        }
    }

    /// Root of the disk.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Takes all the room that is left.
    ///
    /// # Panics
    ///
    /// When no file can be made.
    pub fn fill(&self) {
        let mut ballast = File::options().append(true).create(true).open(self.ballast());
        let ballast = ballast.as_mut().expect("a file on the disk");
        while ballast.write_all(&[1; BLOCK]).is_ok() {}
    }

    /// Gives back what [`fill`](Self::fill) took.
    ///
    /// # Panics
    ///
    /// When it took nothing.
    pub fn free(&self) {
        fs::remove_file(self.ballast()).expect("the disk was filled");
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // At once, also while a server still has files open; what stays goes with the last of them.
        let _ = Command::new("umount").arg("--lazy").arg(self.path()).status();
    }
}
