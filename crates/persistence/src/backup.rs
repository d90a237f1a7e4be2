//! Copies of a SQLite database: made while servers use it, verified, and put back.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use sqlx::{
    Connection, SqliteConnection,
    migrate::Migrate,
    sqlite::{SqliteConnectOptions, SqliteJournalMode},
};
use tempfile::NamedTempFile;
use thiserror::Error;

use crate::{
    config::{DatabaseConfig, Location},
    migrations::{SchemaVersion, TABLE},
    outage::is_busy,
    session::STATEMENT_TIMEOUT,
    sqlite::create_folder,
};

/// A verified copy of a SQLite database.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DatabaseCopy {
    /// Size of its file in bytes.
    pub bytes: u64,
    /// Version of its tables.
    pub schema: SchemaVersion,
    /// New path of the database that a restore has replaced.
    pub replaced: Option<PathBuf>,
}

/// A database that cannot be copied, or a copy that cannot be used.
#[derive(Debug, Error)]
pub enum CopyError {
    /// The database is not a SQLite file.
    #[error("the configured database is not a SQLite file; back up PostgreSQL with pg_dump")]
    NoFile,
    /// There is no database to copy.
    #[error("there is no database at {}", .0.display())]
    Missing(PathBuf),
    /// The copy would overwrite a file.
    #[error("{} already exists; choose another name", .0.display())]
    Exists(PathBuf),
    /// The database to replace is in use.
    #[error("{} is in use; stop every server on it first", .0.display())]
    InUse(PathBuf),
    /// A file cannot be read or written.
    #[error("{}: {cause}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The error.
        cause: io::Error,
    },
    /// SQLite returned an error.
    #[error("{}: {cause}", path.display())]
    Sql {
        /// Path of the database.
        path: PathBuf,
        /// The error.
        cause: sqlx::Error,
    },
    /// The copy is damaged.
    #[error("{} is damaged: {problem}", path.display())]
    Damaged {
        /// Path of the copy.
        path: PathBuf,
        /// The first problem that SQLite found.
        problem: String,
    },
    /// The file has none of Headgate's tables.
    #[error("{} is not a database of Headgate", .0.display())]
    Foreign(PathBuf),
    /// The tables are too new for this program.
    #[error(
        "{} has schema version {}, but this program knows version {} and tolerates one version \
         more; use a newer program", path.display(), schema.applied, schema.known
    )]
    TooNew {
        /// Path of the copy.
        path: PathBuf,
        /// Version of its tables.
        schema: SchemaVersion,
    },
}

// === impl DatabaseConfig ===

impl DatabaseConfig {
    /// Copies the SQLite database to the new file `target` while servers use it.
    ///
    /// The copy is the state of one moment and has everything that was committed before. It is
    /// verified, and readable by the owner only.
    pub async fn back_up(&self, target: &Path) -> Result<DatabaseCopy, CopyError> {
        back_up(self.file_path()?, target).await
    }

    /// Replaces the SQLite database by the copy `source`, after verifying it. No server may use the
    /// database; the previous one stays under another name.
    pub async fn restore(&self, source: &Path) -> Result<DatabaseCopy, CopyError> {
        restore(source, self.file_path()?).await
    }

    /// Returns the path of the SQLite file.
    pub fn file_path(&self) -> Result<&Path, CopyError> {
        match &self.location {
            Location::File(path) => Ok(path),
            Location::Postgres(_) | Location::Memory => Err(CopyError::NoFile),
        }
    }
}

/// Copies the database at `source` to the new file `target`, readable by the owner only.
///
/// It is the state of one moment, with everything that was committed before this call. Writers are
/// not blocked. `target` appears complete, synced and verified, or not at all.
async fn back_up(source: &Path, target: &Path) -> Result<DatabaseCopy, CopyError> {
    if !source.exists() {
        return Err(CopyError::Missing(source.to_owned()));
    }
    if target.exists() {
        return Err(CopyError::Exists(target.to_owned()));
    }
    let draft = draft_beside(target)?;
    snapshot(source, &draft).await?;
    let copy = verify(draft.path()).await.map_err(|error| error.named(source))?;
    persist(draft, target, false)?;
    Ok(copy)
}

/// Copies the database at `source` and its log, if it has one, into `draft`.
async fn snapshot(source: &Path, draft: &NamedTempFile) -> Result<(), CopyError> {
    let failed = |cause| CopyError::Sql { path: source.to_owned(), cause };
    let options = options(source, true);
    let mut connection = SqliteConnection::connect_with(&options).await.map_err(failed)?;
    // An existing empty file is accepted, and keeps its mode.
    let copied = sqlx::query("VACUUM INTO ?").bind(text(draft.path())?);
    copied.execute(&mut connection).await.map_err(failed)?;
    // The copy is complete, whatever happens to this connection.
    connection.close().await.ok();
    Ok(())
}

/// Replaces the database at `target` by a verified copy of `source`. The previous one stays under
/// another name. Fails while a server uses it.
async fn restore(source: &Path, target: &Path) -> Result<DatabaseCopy, CopyError> {
    if !source.exists() {
        return Err(CopyError::Missing(source.to_owned()));
    }
    create_folder(target).map_err(in_file(target))?;
    if !source.is_file() {
        let cause = io::Error::new(io::ErrorKind::InvalidInput, "not a file");
        return Err(CopyError::File { path: source.to_owned(), cause });
    }
    let mut draft = draft_beside(target)?;
    if has_log(source) {
        // The files of a server, not a backup: their latest changes are in the log.
        snapshot(source, &draft).await?;
    } else {
        let mut opened = File::open(source).map_err(in_file(source))?;
        io::copy(&mut opened, &mut draft).map_err(in_file(target))?;
    }
    let copy = verify(draft.path()).await.map_err(|error| error.named(source))?;
    let replaced = keep(target).await?;
    persist(draft, target, replaced.is_some())?;
    Ok(DatabaseCopy { replaced, ..copy })
}

/// Checks the structure of the file at `path` and reads the version of its tables.
async fn verify(path: &Path) -> Result<DatabaseCopy, CopyError> {
    let damaged = |cause: sqlx::Error| {
        let problem = cause.to_string();
        CopyError::Damaged { path: path.to_owned(), problem }
    };
    // Without WAL, so that verifying leaves no files beside it.
    let options = options(path, false).journal_mode(SqliteJournalMode::Delete);
    let mut connection = SqliteConnection::connect_with(&options).await.map_err(damaged)?;
    let check = sqlx::query_scalar("PRAGMA integrity_check(1)").fetch_one(&mut connection);
    let problem: String = check.await.map_err(damaged)?;
    if problem != "ok" {
        return Err(CopyError::Damaged { path: path.to_owned(), problem });
    }
    let applied = connection.list_applied_migrations(TABLE).await.unwrap_or_default();
    let schema = SchemaVersion::of(&applied);
    connection.close().await.map_err(damaged)?;
    match schema {
        SchemaVersion { applied: 0, .. } => Err(CopyError::Foreign(path.to_owned())),
        schema if schema.is_too_new() => Err(CopyError::TooNew { path: path.to_owned(), schema }),
        schema => {
            let bytes = fs::metadata(path).map_err(in_file(path))?.len();
            Ok(DatabaseCopy { bytes, schema, replaced: None })
        }
    }
}

/// Keeps the database at `path` under another name as well, with its log if it has one. Fails if a
/// server uses it. The caller then replaces the file at `path`.
async fn keep(path: &Path) -> Result<Option<PathBuf>, CopyError> {
    if !path.exists() {
        return Ok(None);
    }
    match leave_wal(path).await {
        Ok(false) => return Err(CopyError::InUse(path.to_owned())),
        Err(cause) if is_busy(&cause) => return Err(CopyError::InUse(path.to_owned())),
        // A damaged one, perhaps the reason to restore, is kept as it is.
        Ok(true) | Err(sqlx::Error::Database(_)) => {}
        Err(cause) => return Err(CopyError::Sql { path: path.to_owned(), cause }),
    }
    let name = |number: u32| with_suffix(path, &format!(".replaced-{number}"));
    let kept = name((1..u32::MAX).find(|&number| !name(number).exists()).unwrap_or(u32::MAX));
    // A log that stays would be applied to the next file of this name.
    for suffix in ["-wal", "-shm"] {
        let log = with_suffix(path, suffix);
        if log.exists() {
            fs::rename(&log, with_suffix(&kept, suffix)).map_err(in_file(&log))?;
        }
    }
    // Not every file system has links.
    let linked = fs::hard_link(path, &kept).or_else(|_| fs::copy(path, &kept).map(drop));
    linked.map_err(in_file(&kept))?;
    Ok(Some(kept))
}

/// Returns true if the database at `path` has changes in a log beside it.
fn has_log(path: &Path) -> bool {
    fs::metadata(with_suffix(path, "-wal")).is_ok_and(|log| log.len() > 0)
}

/// Writes the log of the database at `path` back into it and removes it. Returns false if another
/// process has the database open.
async fn leave_wal(path: &Path) -> Result<bool, sqlx::Error> {
    let mut connection = SqliteConnection::connect_with(&options(path, false)).await?;
    let mode = sqlx::query_scalar("PRAGMA journal_mode = DELETE").fetch_one(&mut connection);
    let mode: String = mode.await?;
    connection.close().await?;
    Ok(mode == "delete")
}

fn options(path: &Path, read_only: bool) -> SqliteConnectOptions {
    let options = SqliteConnectOptions::new().filename(path).read_only(read_only);
    options.busy_timeout(STATEMENT_TIMEOUT)
}

/// Creates an empty file in the folder of `path`, readable by the owner only. It is deleted when
/// dropped.
fn draft_beside(path: &Path) -> Result<NamedTempFile, CopyError> {
    let mut draft = tempfile::Builder::new();
    draft.prefix(".headgate-").suffix(".partial");
    draft.tempfile_in(folder(path)).map_err(in_file(path))
}

/// Syncs `draft`, renames it to `path` and syncs the folder.
fn persist(draft: NamedTempFile, path: &Path, overwrite: bool) -> Result<(), CopyError> {
    draft.as_file().sync_all().map_err(in_file(path))?;
    let renamed = if overwrite { draft.persist(path) } else { draft.persist_noclobber(path) };
    renamed.map_err(|failed| match failed.error {
        cause if cause.kind() == io::ErrorKind::AlreadyExists => CopyError::Exists(path.to_owned()),
        cause => CopyError::File { path: path.to_owned(), cause },
    })?;
    File::open(folder(path)).and_then(|folder| folder.sync_all()).map_err(in_file(path))
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// SQLite takes names as text.
fn text(path: &Path) -> Result<&str, CopyError> {
    path.to_str().ok_or_else(|| {
        let cause = io::Error::new(io::ErrorKind::InvalidInput, "the path is not UTF-8");
        CopyError::File { path: path.to_owned(), cause }
    })
}

fn in_file(path: &Path) -> impl Fn(io::Error) -> CopyError {
    move |cause| CopyError::File { path: path.to_owned(), cause }
}

// === impl CopyError ===

impl CopyError {
    /// Names the file that the user knows, rather than the temporary one.
    fn named(self, path: &Path) -> Self {
        let path = path.to_owned();
        match self {
            Self::Damaged { problem, .. } => Self::Damaged { path, problem },
            Self::Foreign(_) => Self::Foreign(path),
            Self::TooNew { schema, .. } => Self::TooNew { path, schema },
            other => other,
        }
    }
}
