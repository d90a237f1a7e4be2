//! The file of a SQLite database.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::outage::Outage;

/// File of a database, told apart from another that took its place.
///
/// SQLite goes on with a file that was deleted: what it writes there is gone with the process.
#[derive(Debug)]
pub(crate) struct DatabaseFile {
    path: PathBuf,
    /// The file that connections have open, once it was created or found.
    used: Mutex<Option<FileId>>,
}

/// Device and inode, which belong to no other file while a connection holds them open.
type FileId = (u64, u64);

// === impl DatabaseFile ===

impl DatabaseFile {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), used: Mutex::new(None) }
    }

    /// Creates the file and its folder if they are missing, readable by us alone: the driver would
    /// use whatever mode it has. What is there keeps its mode. A file that was used and is missing
    /// now is not made again: an empty database would silently lift every limit.
    pub(crate) fn create(&self) -> Result<(), Outage> {
        let mut used = self.lock();
        if used.is_none() {
            create(&self.path)?;
            *used = Some(identity(&self.path)?);
        }
        drop(used);
        self.check()
    }

    /// Checks that the path still leads to the file that connections have open.
    pub(crate) fn check(&self) -> Result<(), Outage> {
        match *self.lock() {
            Some(used) if identity(&self.path).ok() != Some(used) => Err(Outage::FileReplaced),
            _ => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<FileId>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn create(path: &Path) -> io::Result<()> {
    let (mut folder, mut file) = (fs::DirBuilder::new(), fs::OpenOptions::new());
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
        folder.mode(0o700);
        file.mode(0o600);
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        folder.recursive(true).create(parent)?;
    }
    file.append(true).create(true).open(path).map(drop)
}

#[cfg(unix)]
fn identity(path: &Path) -> io::Result<FileId> {
    use std::os::unix::fs::MetadataExt;

    fs::metadata(path).map(|file| (file.dev(), file.ino()))
}

/// Elsewhere a file that is open cannot be deleted.
#[cfg(not(unix))]
fn identity(path: &Path) -> io::Result<FileId> {
    fs::metadata(path).map(|_| (0, 0))
}
