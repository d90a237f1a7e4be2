//! A full disk: acknowledged writes are kept, reads work, and writes succeed again once there is
//! room.

use headgate_persistence::{Database, DatabaseConfig};
use headgate_ratelimit::{
    AuditFilter, AuditLog, Page, RateLimitRuleRepository, RepositoryError, RuleChange, RuleId,
};
use headgate_testkit::{Postgres, SmallDisk, require};
use tokio::task::JoinSet;

use crate::support::{TIMEOUT, create, everything, run, spec, try_write};

/// More rules than fit on any of these disks.
const TOO_MANY: usize = 20_000;

fn open(url: &str) -> Database {
    let config = DatabaseConfig::from_url(url).unwrap();
    Database::open(&config.max_connections(4).connect_timeout(TIMEOUT))
}

/// Creates rules until a write fails; returns the acknowledged ones.
async fn write_until_failure(database: &Database) -> (Vec<RuleId>, RepositoryError) {
    let mut acknowledged = Vec::new();
    for number in 0..TOO_MANY {
        let change = RuleChange::Create(spec(&format!("full{number}"), 60));
        match try_write(database, change, 0).await {
            Ok(rule) => acknowledged.push(rule.id),
            Err(error) => return (acknowledged, error),
        }
    }
    panic!("the disk has room for {TOO_MANY} rules");
}

/// Breaks all connections of the pool.
async fn write_all_at_once(database: &Database) {
    let mut writes = JoinSet::new();
    for number in 0..8 {
        let (database, spec) = (database.clone(), spec(&format!("crowd{number}"), 60));
        writes.spawn(async move { try_write(&database, RuleChange::Create(spec), 0).await });
    }
    writes.join_all().await;
}

async fn recovers_once_there_is_room(database: &Database, disk: &SmallDisk) {
    let first = create(database, spec("u1", 60), 0).await;
    disk.fill();
    let (mut acknowledged, error) = write_until_failure(database).await;
    assert!(matches!(error, RepositoryError::Unavailable(_)), "{error}");
    assert!(database.write_error().is_some(), "{error}");
    write_all_at_once(database).await;
    let (_, rules) = database.load().await.unwrap();
    assert!(rules.contains(&first), "reads go on");

    disk.free();
    for number in 0..8 {
        acknowledged.push(create(database, spec(&format!("u2-{number}"), 60), 0).await.id);
    }
    assert_eq!(database.write_error(), None);
    let (rules, audit) = rules_and_records(database).await;
    assert!(acknowledged.iter().all(|id| rules.contains(id)), "nothing acknowledged is lost");
    assert_eq!(rules.len(), audit, "each rule has its audit entry, and the other way round");
}

/// All rules, and the number of audit entries.
async fn rules_and_records(database: &Database) -> (Vec<RuleId>, usize) {
    let (_, rules) = database.load().await.unwrap();
    let page = Page::new(1, Page::MAX_SIZE).unwrap();
    let audit = database.entries(&AuditFilter::default(), page).await.unwrap();
    let rules = rules.into_iter().map(|rule| rule.id).collect();
    (rules, usize::try_from(audit.total).unwrap())
}

#[test]
fn sqlite_recovers_once_there_is_room() {
    let disk = require!(SmallDisk::mount(1024));
    run(async {
        let file = disk.path().join("headgate.db");
        let database = open(&format!("sqlite://{}", file.display()));
        database.migrate().await.unwrap();
        recovers_once_there_is_room(&database, &disk).await;
        database.close().await;

        let database = open(&format!("sqlite://{}", file.display()));
        database.migrate().await.unwrap();
        create(&database, spec("after-restart", 60), 0).await;
        database.close().await;
    });
}

#[test]
fn postgres_recovers_once_there_is_room() {
    let disk = require!(SmallDisk::mount(16 * 1024));
    let postgres = require!(Postgres::start());
    let url = postgres.database_on(&disk, "small");
    run(async {
        let database = open(&url);
        database.migrate().await.unwrap();
        recovers_once_there_is_room(&database, &disk).await;
        database.close().await;
    });
}

#[test]
fn a_probe_detects_that_writes_succeed_again() {
    let disk = require!(SmallDisk::mount(1024));
    run(async {
        let database = open(&format!("sqlite://{}/headgate.db", disk.path().display()));
        database.migrate().await.unwrap();
        let before = everything(&database).await;
        disk.fill();
        // Use up the room that is left in the journal.
        let mut refused = false;
        for _ in 0..TOO_MANY {
            refused = database.probe_writes().await.is_err();
            if refused {
                break;
            }
        }
        assert!(refused && database.write_error().is_some());
        disk.free();
        database.probe_writes().await.unwrap();
        assert_eq!(database.write_error(), None);
        assert_eq!(everything(&database).await, before);
        database.close().await;
    });
}

/// A rejected rule is no failure of the database.
#[test]
fn a_rejected_rule_is_no_write_error() {
    run(async {
        let database = open("sqlite::memory:");
        database.migrate().await.unwrap();
        create(&database, spec("u1", 60), 0).await;
        let twin = try_write(&database, RuleChange::Create(spec("u1", 60)), 1).await;
        assert!(matches!(twin, Err(RepositoryError::Exists { .. })), "{twin:?}");
        assert_eq!(database.write_error(), None);
    });
}
