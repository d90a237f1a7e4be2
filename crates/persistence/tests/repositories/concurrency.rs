//! Several replicas on one database.

use std::time::Duration;

use headgate_ratelimit::{RateLimitRuleRepository, RepositoryError, Revision, RuleChange};
use tokio::task::JoinSet;

use crate::support::{Home, author, create, everything, on_both, revision, spec, try_write};

on_both!(
    one_of_two_concurrent_creations_wins,
    every_write_has_its_own_revision,
    a_plan_for_an_older_revision_is_rejected,
    one_of_several_conditional_writes_wins,
    replicas_can_migrate_concurrently,
    a_dropped_write_is_atomic,
    a_write_that_waits_for_a_lock_times_out,
);

async fn one_of_two_concurrent_creations_wins(home: &Home) {
    let replicas = [home.migrated().await, home.open()];
    for window in 1..=8 {
        let mut writes = JoinSet::new();
        for replica in [&replicas[0], &replicas[1], &replicas[0], &replicas[1]] {
            let replica = replica.clone();
            let change = RuleChange::Create(spec("u1", window));
            writes.spawn(async move { try_write(&replica, change, 0).await });
        }
        let results = writes.join_all().await;
        let lost = |result: &&Result<_, _>| matches!(result, Err(RepositoryError::Exists { .. }));
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
        assert_eq!(results.iter().filter(lost).count(), 3, "{results:?}");
    }
    assert_eq!(everything(&replicas[0]).await.1.len(), 8);
}

async fn every_write_has_its_own_revision(home: &Home) {
    let replicas = [home.migrated().await, home.open()];
    let before = revision(&replicas[0]).await;
    let mut writes = JoinSet::new();
    for number in 0..20 {
        let replica = replicas[number % 2].clone();
        let spec = spec(&format!("u{number}"), 60);
        writes.spawn(async move { create(&replica, spec, 0).await });
    }
    writes.join_all().await;
    assert_eq!(revision(&replicas[1]).await.0, before.0 + 20);
}

async fn a_plan_for_an_older_revision_is_rejected(home: &Home) {
    let database = home.migrated().await;
    let rule = create(&database, spec("u1", 60), 0).await;
    let (seen, _) = database.load().await.unwrap();
    create(&database, spec("u2", 60), 1).await;
    let before = everything(&database).await;
    let prune = [RuleChange::Delete(rule.id)];
    let refused = database.write_if_unchanged(&prune, seen, &author(2)).await.unwrap_err();
    let now = Revision(seen.0 + 1);
    assert!(
        matches!(refused, RepositoryError::RulesChanged { expected: s, actual: n } if (s, n) == (seen, now)),
        "{refused}"
    );
    assert_eq!(everything(&database).await, before);

    database.write_if_unchanged(&prune, now, &author(3)).await.unwrap();
    assert_eq!(everything(&database).await.1.len(), 1);
}

async fn one_of_several_conditional_writes_wins(home: &Home) {
    let replicas = [home.migrated().await, home.open()];
    let seen = revision(&replicas[0]).await;
    let mut writes = JoinSet::new();
    for number in 0..8 {
        let replica = replicas[number % 2].clone();
        let changes = [RuleChange::Create(spec(&format!("u{number}"), 60))];
        writes.spawn(async move { replica.write_if_unchanged(&changes, seen, &author(0)).await });
    }
    let results = writes.join_all().await;
    let lost = |result: &&Result<_, _>| matches!(result, Err(RepositoryError::RulesChanged { .. }));
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
    assert_eq!(results.iter().filter(lost).count(), 7, "{results:?}");
    assert_eq!(everything(&replicas[1]).await.1.len(), 1);
}

async fn replicas_can_migrate_concurrently(home: &Home) {
    let mut migrations = JoinSet::new();
    for _ in 0..16 {
        let replica = home.open();
        migrations.spawn(async move { replica.migrate().await });
    }
    for migrated in migrations.join_all().await {
        migrated.unwrap();
    }
    let database = home.migrated().await;
    let rule = create(&database, spec("u1", 60), 0).await;
    database.migrate().await.unwrap();
    assert_eq!(database.load().await.unwrap().1, [rule]);
}

async fn a_dropped_write_is_atomic(home: &Home) {
    let database = home.migrated().await;
    let before = everything(&database).await.0;
    for number in 0..40_u32 {
        let changes = [spec(&format!("a{number}"), 60), spec(&format!("b{number}"), 60)];
        let changes = changes.map(RuleChange::Create);
        let patience = Duration::from_micros(100) * number;
        let _ = tokio::time::timeout(patience, database.write(&changes, &author(0))).await;
    }
    create(&database, spec("u1", 1_000), 0).await;
    let (revision, rules, audit) = everything(&database).await;
    let writes = usize::try_from(revision - before).unwrap();
    assert_eq!(rules.len(), 2 * (writes - 1) + 1);
    assert_eq!(audit.len(), rules.len());
}

async fn a_write_that_waits_for_a_lock_times_out(home: &Home) {
    let database = home.migrated().await;
    let mut console = home.console().await;
    let lock = match home {
        Home::Sqlite(_) => "BEGIN IMMEDIATE",
        Home::Postgres(_) => "BEGIN; LOCK TABLE revisions",
    };
    console.run(lock).await;
    let write = try_write(&database, RuleChange::Create(spec("u1", 60)), 0);
    let error = tokio::time::timeout(Duration::from_secs(60), write).await.unwrap().unwrap_err();
    assert!(matches!(error, RepositoryError::Unavailable(_)), "{error}");
    console.run("ROLLBACK").await;
    create(&database, spec("u1", 60), 0).await;
}
