//! Durability and outages.

use headgate::Timestamp;
use headgate_ratelimit::{Author, RateLimitRuleRepository, RepositoryError, RuleChange};

use crate::support::{Home, at, author, create, everything, on_both, spec};

on_both!(
    rules_and_audit_log_survive_a_restart,
    times_are_stored_with_milliseconds,
    a_closed_database_is_an_outage,
    a_missing_table_is_an_outage,
);

async fn rules_and_audit_log_survive_a_restart(home: &Home) {
    let database = home.migrated().await;
    create(&database, spec("u1", 60), 0).await;
    let before = everything(&database).await;
    database.close().await;

    let database = home.migrated().await;
    assert_eq!(everything(&database).await, before);
    database.ping().await.unwrap();
}

async fn times_are_stored_with_milliseconds(home: &Home) {
    let database = home.migrated().await;
    let written = Author { at: at(3).plus(999), ..author(0) };
    let changes = [RuleChange::Create(spec("u1", 60))];
    let [rule] = database.write(&changes, &written).await.unwrap().try_into().unwrap();
    assert_eq!(rule.created_at, at(3));
    let (_, rules, audit) = everything(&database).await;
    assert_eq!((&*rules, audit[0].author.at), (&[rule][..], at(3)));

    // Extreme times must not break anything.
    for time in [0, u64::MAX] {
        let written = Author { at: Timestamp::from_micros(time), ..author(0) };
        let changes = [RuleChange::Create(spec("u2", 60 + i64::from(time == 0)))];
        let [rule] = database.write(&changes, &written).await.unwrap().try_into().unwrap();
        assert_eq!(database.get(rule.id).await.unwrap(), Some(rule));
    }
}

async fn a_closed_database_is_an_outage(home: &Home) {
    let database = home.migrated().await;
    database.close().await;
    let error = database.ping().await.unwrap_err();
    assert!(matches!(error, RepositoryError::Unavailable(_)), "{error}");
}

async fn a_missing_table_is_an_outage(home: &Home) {
    let database = home.open();
    let error = database.load().await.unwrap_err();
    assert!(matches!(error, RepositoryError::Unavailable(_)), "{error}");
    database.migrate().await.unwrap();
    assert!(database.load().await.unwrap().1.is_empty());
}
