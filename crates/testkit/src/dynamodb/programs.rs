use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use crate::{Skip, cache, java};

const NAME: &str = "dynamodb";

/// Java, and the folder with the jars and native libraries of the server.
#[derive(Debug, Clone)]
pub(super) struct Programs {
    pub(super) java: PathBuf,
    jars: PathBuf,
}

// === impl Programs ===

impl Programs {
    pub(super) fn find() -> Result<Self, Skip> {
        let java = java::find(NAME)?;
        let jars = cache::tool(NAME).filter(|folder| has_server(folder));
        let jars =
            jars.ok_or_else(|| skip("scripts/install-test-deps has not fetched its jars"))?;
        Ok(Self { java, jars })
    }

    /// All jars of the folder.
    pub(super) fn class_path(&self) -> PathBuf {
        self.jars.join("*")
    }

    /// Path of the SQLite library, which the server uses for its data.
    pub(super) fn native_libraries(&self) -> OsString {
        let mut option = OsString::from("-Dsqlite4java.library.path=");
        option.push(&self.jars);
        option
    }
}

pub(super) fn skip(reason: &str) -> Skip {
    Skip::new(NAME, reason)
}

fn has_server(folder: &Path) -> bool {
    let is_server = |name: &str| name.starts_with("DynamoDBLocal-");
    fs::read_dir(folder).is_ok_and(|entries| {
        entries.flatten().any(|entry| entry.file_name().to_str().is_some_and(is_server))
    })
}
