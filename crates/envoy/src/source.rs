//! The files on disk.

use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use headgate_config::{ConfigError, open_regular_file};

use crate::{EnvoyConfig, compiled::all_or_problems};

/// Location of the domain files.
#[derive(Clone, Debug)]
pub(crate) enum FileSource {
    Directory(PathBuf),
    File(PathBuf),
}

/// A file's path and contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceFile {
    pub(crate) path: PathBuf,
    pub(crate) text: Arc<str>,
}

/// Maximum size of a file.
const MAX_BYTES: u64 = 1024 * 1024;

/// Maximum number of files in a directory.
const MAX_FILES: usize = 1024;

// === impl FileSource ===

impl FileSource {
    /// Returns the source that is configured, if any.
    pub(crate) fn of(config: &EnvoyConfig) -> Option<Self> {
        let directory = config.config_dir.clone().map(Self::Directory);
        directory.or_else(|| config.config_file.clone().map(Self::File))
    }

    /// Returns the directory or the file.
    pub(crate) fn path(&self) -> &Path {
        let (Self::Directory(path) | Self::File(path)) = self;
        path
    }

    pub(crate) fn exists(&self) -> bool {
        self.path().exists()
    }

    /// Reads every file, in the order of their names.
    pub(crate) fn read(&self) -> Result<Vec<SourceFile>, ConfigError> {
        let paths = match self {
            Self::File(path) => vec![path.clone()],
            Self::Directory(directory) => yaml_files(directory)?,
        };
        all_or_problems(paths.iter().map(|path| SourceFile::read(path)))
    }
}

/// Returns the YAML files of a directory, without hidden ones, which mounted volumes have.
fn yaml_files(directory: &Path) -> Result<Vec<PathBuf>, ConfigError> {
    let unreadable = |cause: io::Error| ConfigError::Unreadable { path: directory.into(), cause };
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let is_yaml =
            path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
        let hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        if is_yaml && !hidden {
            paths.push(path);
        }
    }
    if paths.len() > MAX_FILES {
        let message = format!("too many YAML files: expected at most {MAX_FILES}");
        return Err(unreadable(io::Error::other(message)));
    }
    paths.sort();
    Ok(paths)
}

// === impl SourceFile ===

impl SourceFile {
    pub(crate) fn new(path: impl Into<PathBuf>, text: &str) -> Self {
        Self { path: path.into(), text: text.into() }
    }

    /// Reads the file at `path`.
    pub(crate) fn read(path: &Path) -> Result<Self, ConfigError> {
        let unreadable = |cause: io::Error| ConfigError::Unreadable { path: path.into(), cause };
        let mut text = String::new();
        let file = open_regular_file(path).map_err(unreadable)?;
        file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
        if text.len() as u64 > MAX_BYTES {
            let message = format!("file is too large: expected at most {MAX_BYTES} bytes");
            return Err(unreadable(io::Error::other(message)));
        }
        Ok(Self::new(path, &text))
    }
}
