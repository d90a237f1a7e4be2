//! The file of a SQLite database.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::outage::Outage;

/// The file of a database, distinguished from one that replaced it.
///
/// SQLite keeps writing to a deleted file, whose contents are lost with the process.
#[derive(Debug)]
pub(crate) struct DatabaseFile {
    path: PathBuf,
    /// The file that connections have open, once it was created or found.
    used: Mutex<Option<FileId>>,
}

/// Device and inode, which no other file has while a connection holds it open.
type FileId = (u64, u64);

// === impl DatabaseFile ===

impl DatabaseFile {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), used: Mutex::new(None) }
    }

    /// Creates the file and its folder if they are missing, readable by the owner only, which the
    /// driver would not ensure. Existing ones keep their mode. A file that disappears later is not
    /// created again: an empty database would silently lift every limit.
    pub(crate) fn create(&self) -> Result<(), Outage> {
        let mut used = self.lock();
        if used.is_none() {
            create(&self.path)?;
            *used = Some(identity(&self.path)?);
        }
        drop(used);
        self.check()
    }

    /// Checks that the path still refers to the file that connections have open.
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
    create_folder(path)?;
    let mut file = fs::OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        file.mode(0o600);
    }
    file.append(true).create(true).open(path).map(drop)
}

/// Creates the folder of `path` if it is missing, for the owner only.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    let mut folder = fs::DirBuilder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        folder.mode(0o700);
    }
    match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => folder.recursive(true).create(parent),
        None => Ok(()),
    }
}

#[cfg(unix)]
fn identity(path: &Path) -> io::Result<FileId> {
    use std::os::unix::fs::MetadataExt;

    fs::metadata(path).map(|file| (file.dev(), file.ino()))
}

/// On other systems an open file cannot be deleted.
#[cfg(not(unix))]
fn identity(path: &Path) -> io::Result<FileId> {
    fs::metadata(path).map(|_| (0, 0))
}
