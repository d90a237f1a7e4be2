//! A disk that a test can fill.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use crate::Skip;

/// Size of a write: the block size of the file system.
const BLOCK: usize = 4096;

/// A small disk in memory, unmounted when dropped.
#[derive(Debug)]
pub struct SmallDisk {
    folder: TempDir,
}

// === impl SmallDisk ===

impl SmallDisk {
    /// Mounts a disk of this many kilobytes.
    ///
    /// # Errors
    ///
    /// [`Skip`] if the user may not mount.
    ///
    /// # Panics
    ///
    /// If no folder can be created.
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

    /// Fills the disk.
    ///
    /// # Panics
    ///
    /// If no file can be created.
    pub fn fill(&self) {
        let mut ballast = File::options().append(true).create(true).open(self.ballast());
        let ballast = ballast.as_mut().expect("a file on the disk");
        while ballast.write_all(&[1; BLOCK]).is_ok() {}
    }

    /// Frees the space that [`fill`](Self::fill) took.
    ///
    /// # Panics
    ///
    /// If the disk was not filled.
    pub fn free(&self) {
        fs::remove_file(self.ballast()).expect("the disk was filled");
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily, since a server may still have files open.
        let _ = Command::new("umount").arg("--lazy").arg(self.path()).status();
    }
}
