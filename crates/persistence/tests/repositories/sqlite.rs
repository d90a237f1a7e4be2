//! What only SQLite does.

use std::{fs, path::Path, time::Duration};

use headgate_persistence::{Database, DatabaseConfig};
use headgate_ratelimit::{RateLimitRuleRepository, RepositoryError};
use tokio::sync::Notify;

use crate::support::{create, run, spec};

fn open(path: &Path) -> Database {
    Database::open(&DatabaseConfig::from_url(&format!("sqlite://{}", path.display())).unwrap())
}

#[cfg(unix)]
#[test]
fn its_files_and_folders_are_for_our_eyes_only() {
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
fn a_file_that_cannot_be_made_is_an_outage() {
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
fn it_can_live_in_memory() {
    run(async {
        let config = DatabaseConfig::from_url("sqlite::memory:").unwrap();
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
fn nobody_can_be_heard() {
    run(async {
        let database = Database::open(&DatabaseConfig::from_url("sqlite::memory:").unwrap());
        database.migrate().await.unwrap();
        let changed = Notify::new();
        let listening = tokio::time::timeout(Duration::from_millis(200), database.listen(&changed));
        let (listened, _) = tokio::join!(listening, create(&database, spec("u1", 60), 0));
        assert!(listened.is_err());
    });
}
