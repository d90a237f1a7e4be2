//! SQLite only.

use std::{
    fs,
    path::Path,
    pin::pin,
    process::{Command, Stdio},
    time::Duration,
};

use headgate_persistence::{Database, DatabaseConfig};
use headgate_ratelimit::{RateLimitRuleRepository, RepositoryError, RuleChange};
use sqlx::{AssertSqlSafe, Connection, Executor, SqliteConnection};
use tokio::sync::Notify;

use crate::support::{TIMEOUT, create, run, spec, try_write};

fn open(path: &Path) -> Database {
    let config = DatabaseConfig::from_url(&format!("sqlite://{}", path.display())).unwrap();
    Database::open(&config.connect_timeout(TIMEOUT))
}

#[cfg(unix)]
#[test]
fn files_and_folders_are_private() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a/b/headgate.db");
    run(async {
        let database = open(&file);
        assert!(!file.exists(), "opening writes nothing");
        database.migrate().await.unwrap();
        create(&database, spec("u1", 60), 0).await;

        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder.path().join("a")), 0o700);
        assert_eq!(mode(&folder.path().join("a/b")), 0o700);
        for name in ["headgate.db", "headgate.db-wal", "headgate.db-shm"] {
            assert_eq!(mode(&folder.path().join("a/b").join(name)), 0o600, "{name}");
        }
    });
}

#[test]
fn a_file_that_cannot_be_created_is_an_outage() {
    let folder = tempfile::tempdir().unwrap();
    let in_the_way = folder.path().join("file");
    fs::write(&in_the_way, "").unwrap();
    run(async {
        let error = open(&in_the_way.join("headgate.db")).migrate().await.unwrap_err();
        assert!(matches!(error, RepositoryError::Unavailable(_)), "{error}");
        assert!(error.to_string().contains("cannot create the database file"), "{error}");
    });
}

#[test]
fn works_in_memory() {
    run(async {
        let config = DatabaseConfig::from_url("sqlite::memory:").unwrap().connect_timeout(TIMEOUT);
        let [database, other] = [Database::open(&config), Database::open(&config)];
        database.migrate().await.unwrap();
        other.migrate().await.unwrap();
        let rule = create(&database, spec("u1", 60), 0).await;
        let writes = (2..20).map(|i| create(&database, spec(&format!("u{i}"), 60), 0));
        for write in writes {
            write.await;
        }
        assert!(database.load().await.unwrap().1.contains(&rule));
        assert!(other.load().await.unwrap().1.is_empty());
    });
}

#[test]
fn listening_never_returns() {
    run(async {
        let config = DatabaseConfig::from_url("sqlite::memory:").unwrap().connect_timeout(TIMEOUT);
        let database = Database::open(&config);
        database.migrate().await.unwrap();
        let changed = Notify::new();
        let listening = tokio::time::timeout(Duration::from_millis(200), database.listen(&changed));
        let (listened, _) = tokio::join!(listening, create(&database, spec("u1", 60), 0));
        assert!(listened.is_err());
    });
}

#[test]
fn a_deleted_file_rejects_writes_until_it_is_restored() {
    let folder = tempfile::tempdir().unwrap();
    let [file, elsewhere] = ["headgate.db", "elsewhere.db"].map(|name| folder.path().join(name));
    run(async {
        let database = open(&file);
        database.migrate().await.unwrap();
        let rule = create(&database, spec("u1", 60), 0).await;

        fs::rename(&file, &elsewhere).unwrap();
        let error = try_write(&database, RuleChange::Create(spec("u2", 60)), 1).await.unwrap_err();
        assert!(error.to_string().contains("deleted or replaced"), "{error}");
        assert!(database.write_error().is_some());
        // It is not created again: an empty database has no limits.
        database.migrate().await.unwrap_err();
        assert!(!file.exists());

        fs::copy(&elsewhere, &file).unwrap();
        database.load().await.unwrap_err();

        fs::rename(&elsewhere, &file).unwrap();
        let other = create(&database, spec("u2", 60), 1).await;
        let (_, rules) = database.load().await.unwrap();
        assert_eq!(rules.len(), 2);
        assert!(rules.contains(&rule) && rules.contains(&other));
    });
}

/// SQLite falls back to a read-only connection, which must not stay in the pool.
#[cfg(target_os = "linux")]
#[test]
fn writes_succeed_once_a_file_is_no_longer_read_only() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("headgate.db");
    let chattr = |flag: &str| {
        let status = Command::new("chattr").arg(flag).arg(&file).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    run(async {
        let database = open(&file);
        database.migrate().await.unwrap();
        create(&database, spec("u1", 60), 0).await;
        database.close().await;
    });
    if !chattr("+i") {
        // Only root may do this, and not on every file system.
        return;
    }
    run(async {
        let database = open(&file);
        let write = |number: u64| {
            try_write(&database, RuleChange::Create(spec(&format!("u2-{number}"), 60)), number)
        };
        let refused = write(0).await;
        assert!(chattr("-i"));
        assert!(matches!(refused, Err(RepositoryError::Unavailable(_))), "{refused:?}");
        write(1).await.unwrap();
        write(2).await.unwrap();
        database.close().await;
    });
}

/// Another program, such as a server that starts at the same time, holds `lock` for longer than a
/// statement waits.
async fn migrates_once_unlocked(lock: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("headgate.db");
    let url = format!("sqlite://{}?mode=rwc", file.display());
    let mut other = SqliteConnection::connect(&url).await.unwrap();
    other.execute(sqlx::raw_sql(AssertSqlSafe(lock.to_owned()))).await.unwrap();

    let database = open(&file);
    let mut migration = pin!(database.migrate());
    let waited = tokio::time::timeout(Duration::from_secs(7), &mut migration).await;
    assert!(waited.is_err(), "{waited:?}");
    other.execute("COMMIT").await.unwrap();
    migration.await.unwrap();
    create(&database, spec("u1", 60), 0).await;
    database.close().await;
}

#[test]
fn a_migration_waits_for_another_writer() {
    run(migrates_once_unlocked("CREATE TABLE other (id); BEGIN EXCLUSIVE"));
}

#[test]
fn a_migration_waits_for_readers_to_change_the_journal() {
    run(migrates_once_unlocked("CREATE TABLE other (id); BEGIN; SELECT * FROM other"));
}

#[test]
fn a_migration_waits_for_a_writer_in_the_new_journal() {
    run(migrates_once_unlocked(
        "PRAGMA journal_mode = WAL; CREATE TABLE other (id); BEGIN IMMEDIATE",
    ));
}
