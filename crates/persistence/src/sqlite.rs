//! How SQLite is connected to.

use std::{fs, io, path::Path};

use sqlx::{
    SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions},
};

use crate::{config::DatabaseConfig, session::STATEMENT_TIMEOUT};

/// A pool that opens the file at `path` when somebody needs it. [`create`] makes the file.
pub(crate) fn open(path: &Path, config: &DatabaseConfig) -> SqlitePool {
    let options = SqliteConnectOptions::new().filename(path);
    SqlitePoolOptions::new()
        .acquire_timeout(config.connect_timeout)
        .max_connections(config.max_connections)
        .max_lifetime(config.max_lifetime)
        .connect_lazy_with(usual(options).journal_mode(SqliteJournalMode::Wal))
}

/// A database that lives as long as its only connection.
pub(crate) fn open_in_memory(config: &DatabaseConfig) -> SqlitePool {
    let options = SqliteConnectOptions::new().in_memory(true);
    SqlitePoolOptions::new()
        .acquire_timeout(config.connect_timeout)
        .max_connections(1)
        .max_lifetime(None)
        .idle_timeout(None)
        .connect_lazy_with(usual(options))
}

/// Makes the file, for our eyes only, and its folder, if they are missing: others would make the
/// file with whatever mode they have. What is there keeps its mode.
pub(crate) fn create(path: &Path) -> io::Result<()> {
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

fn usual(options: SqliteConnectOptions) -> SqliteConnectOptions {
    options.busy_timeout(STATEMENT_TIMEOUT).foreign_keys(true)
}
