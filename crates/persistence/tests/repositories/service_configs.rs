//! Service documents: versions, audit log and notifications.

mod live;
mod relay;

use headgate_persistence::ServiceConfigDatabase;
use headgate_ratelimit::Author;
use headgate_service_config::{
    AuditFilter, ConfigChange, ConfigUpdate, DocumentKind, DocumentSchema, DocumentStoreError,
    Kinds, ServiceConfig, ServiceConfigRepository, ServiceState,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use self::relay::RelayDocument;
use crate::support::{Home, at, author, on_both};

on_both!(
    documents_are_stored_with_the_next_version,
    an_expected_version_must_be_the_current_one,
    one_of_several_conditional_updates_wins,
    unconditional_updates_all_succeed,
    changes_are_recorded_with_before_and_after,
    a_change_fails_if_the_audit_log_cannot_be_written,
    stale_states_are_deleted,
    the_latest_registration_of_a_kind_is_kept,
    an_older_revision_of_a_kind_does_not_replace_a_newer_one,
    an_invalid_document_does_not_affect_other_services,
);

pub(super) fn update(service: &str, config: Value, expected: Option<i64>) -> ConfigUpdate {
    ConfigUpdate { service: service.to_owned(), config, expected_version: expected }
}

pub(super) fn events(n: u64) -> Value {
    json!({"rate_limit": {"ws": {"events_per_minute": n}}})
}

pub(super) async fn put(
    documents: &ServiceConfigDatabase,
    config: Value,
    expected: Option<i64>,
) -> Result<ServiceConfig, DocumentStoreError> {
    documents.put(&update("relay", config, expected), &author(0)).await
}

async fn documents(home: &Home) -> ServiceConfigDatabase {
    home.migrated().await.service_configs()
}

fn current(result: Result<ServiceConfig, DocumentStoreError>) -> Option<i64> {
    match result {
        Err(DocumentStoreError::VersionMismatch { current }) => current,
        other => panic!("{other:?}"),
    }
}

async fn documents_are_stored_with_the_next_version(home: &Home) {
    let documents = documents(home).await;
    assert_eq!(documents.get("relay").await.unwrap(), None);
    let first = put(&documents, events(10), None).await.unwrap();
    assert_eq!((first.version, &first.config), (1, &events(10)));
    assert_eq!((first.updated_at, first.updated_by.as_str()), (at(0), "ada"));
    let second = put(&documents, events(20), Some(1)).await.unwrap();
    assert_eq!(second.version, 2);
    assert_eq!(documents.get("relay").await.unwrap(), Some(second.clone()));

    let other = documents.put(&update("bootstrap", json!({}), Some(0)), &author(5)).await.unwrap();
    assert_eq!(other.version, 1);
    assert_eq!(documents.list().await.unwrap(), [other, second]);
}

async fn an_expected_version_must_be_the_current_one(home: &Home) {
    let documents = documents(home).await;
    assert_eq!(current(put(&documents, events(1), Some(1)).await), None);
    assert_eq!(documents.get("relay").await.unwrap(), None);
    put(&documents, events(1), Some(0)).await.unwrap();
    for expected in [0, 2, -1] {
        assert_eq!(current(put(&documents, events(2), Some(expected)).await), Some(1));
    }
    assert_eq!(documents.get("relay").await.unwrap().unwrap().config, events(1));
    assert_eq!(documents.changes(&AuditFilter::default()).await.unwrap().len(), 1);
}

async fn one_of_several_conditional_updates_wins(home: &Home) {
    let replicas = [documents(home).await, home.open().service_configs()];
    for version in 0..10 {
        let mut puts = JoinSet::new();
        for n in 0..4 {
            let replica = replicas[n % 2].clone();
            puts.spawn(async move { put(&replica, events(n as u64 + 1), Some(version)).await });
        }
        let results = puts.join_all().await;
        let won: Vec<_> = results.iter().filter_map(|result| result.as_ref().ok()).collect();
        assert_eq!(won.len(), 1, "{results:?}");
        assert_eq!(won[0].version, version + 1);
        assert_eq!(replicas[0].get("relay").await.unwrap().as_ref(), Some(won[0]));
        let lost = |result: &&Result<_, _>| {
            matches!(result, Err(DocumentStoreError::VersionMismatch { .. }))
        };
        assert_eq!(results.iter().filter(lost).count(), 3, "{results:?}");
    }
    assert_eq!(replicas[0].changes(&AuditFilter::default()).await.unwrap().len(), 10);
}

async fn unconditional_updates_all_succeed(home: &Home) {
    let replicas = [documents(home).await, home.open().service_configs()];
    let mut puts = JoinSet::new();
    for n in 0..8 {
        let replica = replicas[n % 2].clone();
        puts.spawn(async move { put(&replica, events(n as u64 + 1), None).await.unwrap().version });
    }
    let mut versions = puts.join_all().await;
    versions.sort_unstable();
    assert_eq!(versions, (1..=8).collect::<Vec<_>>());
    // The audit log shows that each replaced the one before.
    let changes = replicas[0].changes(&AuditFilter::default()).await.unwrap();
    let mut steps: Vec<_> = changes
        .iter()
        .map(|change| {
            let version = |side| change.diff[side]["version"].as_i64().unwrap_or_default();
            (version("before"), version("after"))
        })
        .collect();
    steps.sort_unstable();
    assert_eq!(steps, (0..8).map(|version| (version, version + 1)).collect::<Vec<_>>());
}

async fn changes_are_recorded_with_before_and_after(home: &Home) {
    let documents = documents(home).await;
    for (n, millis) in [(10, 0), (20, 1_000), (30, 2_000)] {
        documents.put(&update("relay", events(n), None), &author(millis)).await.unwrap();
    }
    documents.put(&update("bootstrap", json!({}), None), &author(3_000)).await.unwrap();

    let target = ConfigChange::target("relay");
    let relay = AuditFilter {
        action: Some(ConfigChange::UPDATE.to_owned()),
        target: Some(target.clone()),
        ..AuditFilter::default()
    };
    let changes = documents.changes(&relay).await.unwrap();
    assert_eq!(changes.len(), 3);
    let newest = &changes[0];
    assert_eq!((newest.action.as_str(), &newest.target), ("service_config.update", &target));
    assert_eq!(newest.author, Author { at: at(2_000), ..author(2_000) });
    assert_eq!(
        newest.diff,
        json!({
            "before": {"version": 2, "config_json": events(20)},
            "after": {"version": 3, "config_json": events(30)},
        })
    );
    assert_eq!(changes[2].diff["before"], Value::Null);
    assert!(changes[0].id > changes[1].id);

    let since = AuditFilter { since: Some(at(1_000)), ..relay.clone() };
    assert_eq!(documents.changes(&since).await.unwrap().len(), 2);
    let one = AuditFilter { limit: Some(1), ..AuditFilter::default() };
    assert_eq!(documents.changes(&one).await.unwrap()[0].target, "service:bootstrap");
    let nothing = AuditFilter { action: Some("other".to_owned()), ..AuditFilter::default() };
    assert_eq!(documents.changes(&nothing).await.unwrap(), []);
}

async fn a_change_fails_if_the_audit_log_cannot_be_written(home: &Home) {
    let documents = documents(home).await;
    put(&documents, events(1), None).await.unwrap();
    let mut console = home.console().await;
    console.run("ALTER TABLE audit_logs RENAME TO audit_logs_away").await;
    for expected in [None, Some(1)] {
        let error = put(&documents, events(2), expected).await.unwrap_err();
        assert!(matches!(error, DocumentStoreError::AuditLog(_)), "{error}");
    }
    let fresh = documents.put(&update("user-api", json!({}), None), &author(0)).await;
    assert!(matches!(fresh, Err(DocumentStoreError::AuditLog(_))), "{fresh:?}");
    console.run("ALTER TABLE audit_logs_away RENAME TO audit_logs").await;

    let kept = documents.list().await.unwrap();
    assert_eq!(kept.len(), 1);
    assert_eq!((kept[0].version, &kept[0].config), (1, &events(1)));
    assert_eq!(documents.changes(&AuditFilter::default()).await.unwrap().len(), 1);
    assert_eq!(put(&documents, events(3), Some(1)).await.unwrap().version, 2);
}

async fn stale_states_are_deleted(home: &Home) {
    let documents = documents(home).await;
    let state = |instance: &str, version, millis| ServiceState {
        service: "relay".to_owned(),
        instance: instance.to_owned(),
        version,
        source: "document".to_owned(),
        seen_at: at(millis),
    };
    documents.report(&[state("b", Some(1), 0), state("a", None, 500)], at(0)).await.unwrap();
    let states = documents.states().await.unwrap();
    assert_eq!(states, [state("a", None, 500), state("b", Some(1), 0)]);

    documents.report(&[state("a", Some(2), 1_000)], at(1)).await.unwrap();
    assert_eq!(documents.states().await.unwrap(), [state("a", Some(2), 1_000)]);
}

async fn the_latest_registration_of_a_kind_is_kept(home: &Home) {
    let documents = documents(home).await;
    assert_eq!(documents.kinds().await.unwrap(), Kinds::new());
    let relay = Kinds::new().with::<RelayDocument>();
    documents.register(&relay, at(0)).await.unwrap();
    assert_eq!(documents.kinds().await.unwrap(), relay);
    assert!(relay.validate("relay", &events(0)).is_err());

    let any = |service: &str| {
        (service.to_owned(), DocumentKind { revision: 1, schema: DocumentSchema::Any })
    };
    documents.register(&Kinds::from_iter([any("bootstrap"), any("relay")]), at(1)).await.unwrap();
    let kinds = documents.kinds().await.unwrap();
    assert_eq!(kinds, Kinds::from_iter([any("relay"), any("bootstrap")]));
}

async fn an_older_revision_of_a_kind_does_not_replace_a_newer_one(home: &Home) {
    let documents = documents(home).await;
    let relay = |revision, schema| {
        Kinds::from_iter([("relay".to_owned(), DocumentKind { revision, schema })])
    };
    let newer = relay(2, DocumentSchema::List { max_items: 2 });
    documents.register(&newer, at(0)).await.unwrap();
    documents.register(&relay(1, DocumentSchema::Any), at(1)).await.unwrap();
    assert_eq!(documents.kinds().await.unwrap(), newer);

    let same = relay(2, DocumentSchema::List { max_items: 3 });
    documents.register(&same, at(2)).await.unwrap();
    assert_eq!(documents.kinds().await.unwrap(), same);
}

async fn an_invalid_document_does_not_affect_other_services(home: &Home) {
    let documents = documents(home).await;
    assert_eq!(documents.kind("relay").await.unwrap(), None);
    documents.register(&Kinds::new().with::<RelayDocument>(), at(0)).await.unwrap();
    let relay = put(&documents, events(10), None).await.unwrap();
    documents.put(&update("bootstrap", json!({}), None), &author(0)).await.unwrap();
    let before_1970 = match home {
        Home::Sqlite(_) => "-1",
        Home::Postgres(_) => "'1969-07-20T20:17:40Z'",
    };
    let sql = format!(
        "UPDATE service_configs SET updated_at = {before_1970} WHERE service = 'bootstrap'"
    );
    home.console().await.run(&sql).await;

    let all = documents.list().await;
    assert!(matches!(all, Err(DocumentStoreError::Corrupt(_))), "{all:?}");
    assert_eq!(documents.get("relay").await.unwrap(), Some(relay));
    let kind = documents.kind("relay").await.unwrap();
    assert_eq!(kind, Some(DocumentKind::of::<RelayDocument>()));
}
