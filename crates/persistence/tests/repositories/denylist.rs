//! The denylist: entries, revisions, audit log and concurrent writers.

use headgate_persistence::DenylistDatabase;
use headgate_service_config::{AuditFilter, DenyEntry, DenyUpdate, ServiceConfigRepository as _};
use tokio::task::JoinSet;

use crate::support::{Home, at, author, on_both};

on_both!(
    entries_are_unique_by_subject_and_changes_increase_the_revision,
    expired_entries_are_deleted_with_the_next_change,
    concurrent_writes_are_all_kept,
    a_change_fails_if_the_audit_log_cannot_be_written,
);

fn update(subject: &str, expires: Option<u64>) -> DenyUpdate {
    let (subject, reason) = (subject.to_owned(), "spam".to_owned());
    DenyUpdate { subject, reason, expires_at: expires.map(at) }
}

async fn subjects(list: &DenylistDatabase) -> Vec<String> {
    let entries = list.load().await.unwrap().entries;
    entries.into_iter().map(|entry| entry.subject).collect()
}

async fn entries_are_unique_by_subject_and_changes_increase_the_revision(home: &Home) {
    let list = home.migrated().await.denylist();
    assert_eq!((list.revision().await.unwrap(), subjects(&list).await.len()), (0, 0));
    let first = list.put(&update("b", None), &author(0)).await.unwrap();
    assert_eq!((first.created_at, first.created_by.as_str()), (at(0), "ada"));
    list.put(&update("a", Some(60)), &author(0)).await.unwrap();
    let again = list.put(&update("b", Some(90)), &author(5)).await.unwrap();
    assert_eq!((again.created_at, again.expires_at), (at(5), Some(at(90))));
    let kept = list.load().await.unwrap();
    assert_eq!((kept.revision, &kept.entries[1]), (3, &again));
    assert!(list.remove("a", &author(6)).await.unwrap());
    assert!(!list.remove("a", &author(6)).await.unwrap());
    assert_eq!(subjects(&list).await, ["b"]);
    assert_eq!(list.revision().await.unwrap(), 4, "the last call changed nothing");
}

async fn expired_entries_are_deleted_with_the_next_change(home: &Home) {
    let list = home.migrated().await.denylist();
    list.put(&update("a", Some(10)), &author(0)).await.unwrap();
    list.put(&update("b", None), &author(9)).await.unwrap();
    assert_eq!(subjects(&list).await, ["a", "b"]);
    list.put(&update("c", None), &author(10)).await.unwrap();
    assert_eq!(subjects(&list).await, ["b", "c"]);
}

async fn concurrent_writes_are_all_kept(home: &Home) {
    let database = home.migrated().await;
    let mut writers = JoinSet::new();
    for n in 0..8 {
        let list = database.denylist();
        writers.spawn(async move {
            list.put(&update(&format!("s{n}"), None), &author(n)).await.unwrap();
        });
    }
    writers.join_all().await;
    let kept = database.denylist().load().await.unwrap();
    assert_eq!((kept.revision, kept.entries.len()), (8, 8));
    let filter = AuditFilter { action: Some(DenyEntry::PUT.to_owned()), ..AuditFilter::default() };
    assert_eq!(database.service_configs().changes(&filter).await.unwrap().len(), 8);
}

async fn a_change_fails_if_the_audit_log_cannot_be_written(home: &Home) {
    let list = home.migrated().await.denylist();
    list.put(&update("a", None), &author(0)).await.unwrap();
    let mut console = home.console().await;
    console.run("ALTER TABLE audit_logs RENAME TO audit_logs_away").await;
    assert!(list.put(&update("b", None), &author(0)).await.is_err());
    assert!(list.remove("a", &author(0)).await.is_err());
    console.run("ALTER TABLE audit_logs_away RENAME TO audit_logs").await;
    assert_eq!((list.revision().await.unwrap(), subjects(&list).await), (1, vec!["a".to_owned()]));
}
