//! Backups of a SQLite file.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use headgate_persistence::{CopyError, Database, DatabaseConfig};
use headgate_ratelimit::RateLimitRuleRepository;
use sqlx::{Connection, Executor, SqliteConnection};
use tempfile::TempDir;

use crate::support::{TIMEOUT, create, everything, run, spec};

/// A folder with a database and room for its backup.
struct Home {
    folder: TempDir,
    config: DatabaseConfig,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = DatabaseConfig::file(folder.path().join("headgate.db"));
        let config = config.connect_timeout(TIMEOUT);
        Self { folder, config }
    }

    /// Configuration of another database in the folder.
    fn beside(&self, name: &str) -> DatabaseConfig {
        DatabaseConfig::file(self.path(name)).connect_timeout(TIMEOUT)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn migrated(&self) -> Database {
        let database = Database::open(&self.config);
        database.migrate().await.unwrap();
        database
    }

    /// Names of all files.
    fn files(&self) -> Vec<String> {
        let files = fs::read_dir(self.folder.path()).unwrap();
        let mut files: Vec<_> =
            files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        files.sort();
        files
    }
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;

    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_backup_under_write_load_has_everything_committed_before() {
    let home = Home::new();
    run(async {
        let database = home.migrated().await;
        let (written, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let write = async {
            while !stop.load(Relaxed) {
                let number = written.load(Relaxed);
                create(&database, spec(&format!("u{number}"), 60), number).await;
                written.store(number + 1, Relaxed);
            }
        };
        let back_up = async {
            let mut backups = Vec::new();
            for number in 0..5 {
                let name = format!("{number}.backup");
                let more = written.load(Relaxed) + 20;
                while written.load(Relaxed) < more {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                let (before, file) = (written.load(Relaxed), home.path(&name));
                let copy = home.config.back_up(&file).await.unwrap();
                assert_eq!(copy.bytes, fs::metadata(&file).unwrap().len());
                assert!(!copy.schema.is_newer() && copy.schema.applied > 0);
                backups.push((before, written.load(Relaxed), name));
            }
            stop.store(true, Relaxed);
            backups
        };
        let ((), backups) = tokio::join!(write, back_up);
        for (before, after, name) in backups {
            #[cfg(unix)]
            assert_eq!(mode(&home.path(&name)), 0o600);
            let copy = Database::open(&home.beside(&name));
            copy.migrate().await.unwrap();
            let rules = copy.load().await.unwrap().1.len() as u64;
            // One more may have been committed and not yet counted.
            assert!((before..=after + 1).contains(&rules), "{before} {rules} {after}");
            create(&copy, spec("another", 60), 0).await;
            copy.close().await;
        }
        assert_eq!(database.load().await.unwrap().1.len() as u64, written.load(Relaxed));
    });
}

#[test]
fn a_backup_overwrites_nothing_and_leaves_nothing_behind() {
    let home = Home::new();
    run(async {
        let missing = home.config.back_up(&home.path("copy")).await.unwrap_err();
        assert!(matches!(missing, CopyError::Missing(_)), "{missing}");

        let database = home.migrated().await;
        fs::write(home.path("copy"), "precious").unwrap();
        let exists = home.config.back_up(&home.path("copy")).await.unwrap_err();
        assert!(matches!(exists, CopyError::Exists(_)), "{exists}");
        assert_eq!(fs::read_to_string(home.path("copy")).unwrap(), "precious");

        let nowhere = home.config.back_up(&home.path("no/folder/copy")).await.unwrap_err();
        assert!(matches!(nowhere, CopyError::File { .. }), "{nowhere}");
        database.close().await;
        assert_eq!(home.files(), ["copy", "headgate.db"]);

        // A database that is not Headgate's, and one that is none.
        let other = home.beside("other.db");
        let url = format!("sqlite://{}?mode=rwc", home.path("other.db").display());
        let mut connection = SqliteConnection::connect(&url).await.unwrap();
        connection.execute("CREATE TABLE t (id)").await.unwrap();
        connection.close().await.unwrap();
        let foreign = other.back_up(&home.path("other.copy")).await.unwrap_err();
        assert!(matches!(foreign, CopyError::Foreign(_)), "{foreign}");
        let none = home.beside("copy").back_up(&home.path("c2")).await;
        assert!(matches!(none, Err(CopyError::Sql { .. })), "{none:?}");
        assert_eq!(home.files(), ["copy", "headgate.db", "other.db"]);

        let memory = DatabaseConfig::from_url("sqlite::memory:").unwrap();
        let memory = memory.back_up(&home.path("c3")).await.unwrap_err();
        assert!(matches!(memory, CopyError::NoFile), "{memory}");
    });
}

#[test]
fn a_restore_brings_back_the_state_of_the_backup_and_keeps_the_replaced_one() {
    let home = Home::new();
    run(async {
        let database = home.migrated().await;
        create(&database, spec("u1", 60), 0).await;
        let before = everything(&database).await;
        home.config.back_up(&home.path("copy")).await.unwrap();
        create(&database, spec("u2", 60), 1).await;

        let in_use = home.config.restore(&home.path("copy")).await.unwrap_err();
        assert!(matches!(in_use, CopyError::InUse(_)), "{in_use}");
        let after = everything(&database).await;
        assert_eq!(after.1.len(), 2, "a refused restore changes nothing");
        database.close().await;

        let restored = home.config.restore(&home.path("copy")).await.unwrap();
        let replaced = "headgate.db.replaced-1";
        assert_eq!(restored.replaced, Some(home.path(replaced)));
        let database = home.migrated().await;
        assert_eq!(everything(&database).await, before);
        database.close().await;
        let old = Database::open(&home.beside(replaced));
        old.migrate().await.unwrap();
        assert_eq!(everything(&old).await, after);
        old.close().await;
        #[cfg(unix)]
        assert_eq!(mode(&home.path("headgate.db")), 0o600);

        // Into a folder that does not exist yet.
        let elsewhere = home.beside("drill/headgate.db");
        assert_eq!(elsewhere.restore(&home.path("copy")).await.unwrap().replaced, None);
        let database = Database::open(&elsewhere);
        database.migrate().await.unwrap();
        assert_eq!(everything(&database).await, before);
        database.close().await;
    });
}

/// The files of a server that crashed, copied with `cp`.
#[test]
fn a_restore_has_the_changes_in_the_log_beside_the_given_file() {
    let home = Home::new();
    run(async {
        let database = home.migrated().await;
        create(&database, spec("u1", 60), 0).await;
        let before = everything(&database).await;
        let kept = home.path("kept");
        fs::create_dir(&kept).unwrap();
        for file in ["headgate.db", "headgate.db-wal"] {
            fs::copy(home.path(file), kept.join(file)).unwrap();
        }
        database.close().await;

        let elsewhere = home.beside("drill/headgate.db");
        elsewhere.restore(&kept.join("headgate.db")).await.unwrap();
        let database = Database::open(&elsewhere);
        database.migrate().await.unwrap();
        assert_eq!(everything(&database).await, before);
        database.close().await;

        let folder = elsewhere.restore(&kept).await.unwrap_err();
        assert_eq!(folder.to_string(), format!("{}: not a file", kept.display()));
    });
}

/// The log that a crash leaves must not be applied to the restored file.
#[test]
fn a_restore_replaces_a_damaged_database_and_its_log() {
    let home = Home::new();
    run(async {
        let database = home.migrated().await;
        create(&database, spec("u1", 60), 0).await;
        let before = everything(&database).await;
        home.config.back_up(&home.path("copy")).await.unwrap();
        create(&database, spec("u2", 60), 1).await;
        let log = fs::read(home.path("headgate.db-wal")).unwrap();
        database.close().await;
        fs::write(home.path("headgate.db"), "damaged".repeat(1000)).unwrap();
        fs::write(home.path("headgate.db-wal"), &log).unwrap();

        home.config.restore(&home.path("copy")).await.unwrap();
        let database = home.migrated().await;
        assert_eq!(everything(&database).await, before);
        database.close().await;
        let files = home.files();
        assert!(files.iter().any(|file| file == "headgate.db.replaced-1"), "{files:?}");
    });
}

#[test]
fn a_damaged_or_too_new_backup_is_not_restored() {
    let home = Home::new();
    run(async {
        let database = home.migrated().await;
        create(&database, spec("u1", 60), 0).await;
        home.config.back_up(&home.path("copy")).await.unwrap();
        database.close().await;
        let before = fs::read(home.path("headgate.db")).unwrap();

        let whole = fs::read(home.path("copy")).unwrap();
        let mut damaged = whole.clone();
        let half = damaged.len() / 2;
        damaged[half..].fill(0x55);
        fs::write(home.path("damaged"), damaged).unwrap();
        fs::write(home.path("short"), &whole[..whole.len() / 2]).unwrap();
        for file in ["damaged", "short"] {
            let refused = home.config.restore(&home.path(file)).await.unwrap_err();
            assert!(matches!(refused, CopyError::Damaged { .. }), "{file}: {refused}");
        }

        fs::write(home.path("newer"), whole).unwrap();
        let url = format!("sqlite://{}", home.path("newer").display());
        let mut connection = SqliteConnection::connect(&url).await.unwrap();
        let newer = "INSERT INTO headgate_migrations
            (version, description, installed_on, success, checksum, execution_time)
            SELECT max(version) + 2, '', CURRENT_TIMESTAMP, 1, x'', 0 FROM headgate_migrations";
        connection.execute(newer).await.unwrap();
        connection.close().await.unwrap();
        let refused = home.config.restore(&home.path("newer")).await.unwrap_err();
        assert!(matches!(refused, CopyError::TooNew { .. }), "{refused}");
        assert!(refused.to_string().contains("newer has schema version"), "{refused}");

        assert_eq!(fs::read(home.path("headgate.db")).unwrap(), before);
        assert_eq!(home.files(), ["copy", "damaged", "headgate.db", "newer", "short"]);
    });
}
