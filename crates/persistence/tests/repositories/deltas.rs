//! Changes since a revision.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use headgate::{FailMode, LeasePolicy, Limit, SystemClock};
use headgate_persistence::Database;
use headgate_ratelimit::{
    Catalog, Defaults, RateLimitRule, RateLimitRuleRepository, Refreshed, RepositoryError,
    Revision, RuleChange, RuleDelta, RuleId, Scope,
};

use crate::support::{Home, author, create, on_both, revision, spec, try_write};

on_both!(
    changes_lists_only_changed_rules,
    a_change_beside_2_000_rules_is_one_row,
    long_lists_of_changes_are_read_in_chunks,
    very_large_changes_are_not_recorded,
    missing_revisions_are_detected,
    old_revisions_are_deleted,
    an_invalid_row_keeps_the_last_valid_rules,
    applying_changes_equals_loading_all_rules,
);

fn catalog() -> Catalog {
    let defaults = Defaults {
        limit: Limit::token_bucket(100, Duration::from_secs(60)).unwrap(),
        window_seconds: 60,
        fail_mode: FailMode::Open,
        lease: LeasePolicy::OFF,
    };
    Catalog::new(defaults, Arc::new(SystemClock::new())).unwrap()
}

async fn changes(database: &Database, since: Revision) -> Option<RuleDelta> {
    database.changes(since).await.unwrap()
}

/// The current limit of a user.
fn limit(catalog: &Catalog, identifier: &str) -> u64 {
    catalog.load().matching(Scope::User, identifier).rules[0].limit().capacity()
}

/// Creates `count` rules from `u{from}` on.
async fn fill(database: &Database, from: usize, count: usize) {
    let create = |i| RuleChange::Create(spec(&format!("u{i}"), 60));
    let creations: Vec<RuleChange> = (from..from + count).map(create).collect();
    database.write(&creations, &author(0)).await.unwrap();
}

async fn changes_lists_only_changed_rules(home: &Home) {
    let database = home.migrated().await;
    fill(&database, 0, 20).await;
    let (since, rules) = database.load().await.unwrap();
    assert_eq!(
        changes(&database, since).await.unwrap(),
        RuleDelta { revision: since, ..RuleDelta::default() }
    );

    let new = create(&database, spec("new", 60), 1).await;
    let update = RuleChange::Update(rules[0].id, spec("changed", 60));
    let changed = try_write(&database, update, 2).await.unwrap();
    // A rule that changes twice is listed once; one that was created and deleted is deleted.
    let update = RuleChange::Update(new.id, spec("newer", 60));
    let new = try_write(&database, update, 3).await.unwrap();
    let short = create(&database, spec("short", 60), 4).await;
    let gone = [RuleChange::Delete(rules[1].id), RuleChange::Delete(short.id)];
    database.write(&gone, &author(5)).await.unwrap();

    let delta = changes(&database, since).await.unwrap();
    assert_eq!(delta.revision, revision(&database).await);
    let by_id = |mut rules: Vec<RateLimitRule>| {
        rules.sort_by_key(|rule| rule.id);
        rules
    };
    assert_eq!(by_id(delta.changed), by_id(vec![new.clone(), changed]));
    let deleted: BTreeSet<RuleId> = delta.deleted.into_iter().collect();
    assert_eq!(deleted, [rules[1].id, short.id].into());
    // A newer revision needs fewer changes.
    let last = changes(&database, Revision(delta.revision.0 - 1)).await.unwrap();
    assert_eq!((last.changed.len(), last.deleted.len()), (0, 2));
}

async fn a_change_beside_2_000_rules_is_one_row(home: &Home) {
    let (database, replica) = (home.migrated().await, home.open());
    fill(&database, 0, 2_000).await;
    let catalog = catalog();
    assert_eq!(catalog.refresh(&replica).await.unwrap(), Refreshed::All(2_000));
    assert_eq!(catalog.refresh(&replica).await.unwrap(), Refreshed::Unchanged);

    let rule = create(&database, spec("new", 60), 1).await;
    assert_eq!(catalog.refresh(&replica).await.unwrap(), Refreshed::Changes(1));
    assert_eq!((catalog.load().len(), limit(&catalog, "new")), (2_001, 100));
    let mut seven = spec("new", 60);
    seven.limit = 7;
    try_write(&database, RuleChange::Update(rule.id, seven), 2).await.unwrap();
    assert_eq!(catalog.refresh(&replica).await.unwrap(), Refreshed::Changes(1));
    assert_eq!(limit(&catalog, "new"), 7);
    try_write(&database, RuleChange::Delete(rule.id), 3).await.unwrap();
    assert_eq!(catalog.refresh(&replica).await.unwrap(), Refreshed::Changes(1));
    assert_eq!((catalog.load().len(), limit(&catalog, "new")), (2_000, 100));
}

async fn long_lists_of_changes_are_read_in_chunks(home: &Home) {
    let database = home.migrated().await;
    create(&database, spec("first", 60), 0).await;
    let since = revision(&database).await;
    fill(&database, 0, 2_500).await;
    let delta = changes(&database, since).await.unwrap();
    assert_eq!(delta.changed.len(), 2_500);
    let ids: BTreeSet<RuleId> = delta.changed.iter().map(|rule| rule.id).collect();
    assert_eq!(ids.len(), 2_500);
    let (_, all) = database.load().await.unwrap();
    assert_eq!(all.len(), 2_501);

    let gone: Vec<RuleChange> = ids.into_iter().map(RuleChange::Delete).collect();
    database.write(&gone, &author(1)).await.unwrap();
    assert_eq!(changes(&database, delta.revision).await.unwrap().deleted.len(), 2_500);
}

async fn very_large_changes_are_not_recorded(home: &Home) {
    let database = home.migrated().await;
    let catalog = catalog();
    catalog.refresh(&database).await.unwrap();
    fill(&database, 0, 10_001).await;
    assert_eq!(catalog.refresh(&database).await.unwrap(), Refreshed::All(10_001));
    create(&database, spec("new", 60), 1).await;
    assert_eq!(catalog.refresh(&database).await.unwrap(), Refreshed::Changes(1));
}

async fn missing_revisions_are_detected(home: &Home) {
    let database = home.migrated().await;
    let catalog = catalog();
    create(&database, spec("u1", 60), 0).await;
    catalog.refresh(&database).await.unwrap();
    let since = revision(&database).await;
    // As a server of an older version writes: between two recorded revisions.
    create(&database, spec("u2", 60), 0).await;
    let mut console = home.console().await;
    console
        .run(
            "UPDATE revisions SET revision = revision + 1 WHERE name = 'rate_limit_rules';
             UPDATE rate_limit_rules SET limit_count = 6 WHERE identifier_pattern = 'u1'",
        )
        .await;
    create(&database, spec("u3", 60), 0).await;
    assert_eq!(changes(&database, since).await, None);
    assert_eq!(catalog.refresh(&database).await.unwrap(), Refreshed::All(3));
    assert_eq!(limit(&catalog, "u1"), 6);
    // After a restore.
    assert_eq!(changes(&database, Revision(1_000_000)).await, None);
    console.run("UPDATE revisions SET revision = 1 WHERE name = 'rate_limit_rules'").await;
    assert_eq!(catalog.refresh(&database).await.unwrap(), Refreshed::All(3));
}

async fn old_revisions_are_deleted(home: &Home) {
    let database = home.migrated().await;
    let mut console = home.console().await;
    console.run("UPDATE revisions SET revision = 5000 WHERE name = 'rate_limit_rules'").await;
    let unknown = RuleId::random();
    for old in [1, 3_999, 4_001, 4_002] {
        let sql = format!("INSERT INTO rate_limit_rule_changes VALUES ({old}, '{unknown}')");
        console.run(&sql).await;
    }
    create(&database, spec("u1", 60), 0).await;
    let left = "DELETE FROM rate_limit_rule_changes WHERE revision <";
    assert_eq!(console.run(&format!("{left} 4002")).await, 0, "4001 and before are deleted");
    assert_eq!(console.run(&format!("{left} 5002")).await, 2);
}

async fn an_invalid_row_keeps_the_last_valid_rules(home: &Home) {
    let database = home.migrated().await;
    let (one, two) = (spec("one", 60), spec("two", 60));
    let rule = create(&database, one.clone(), 0).await;
    let other = create(&database, two.clone(), 0).await;
    let catalog = catalog();
    catalog.refresh(&database).await.unwrap();
    for (id, mut spec) in [(rule.id, one), (other.id, two)] {
        spec.limit = 7;
        try_write(&database, RuleChange::Update(id, spec), 1).await.unwrap();
    }
    let mut console = home.console().await;
    let damage = |limit: i64| {
        format!("UPDATE rate_limit_rules SET limit_count = {limit} WHERE id = '{}'", rule.id)
    };
    console.run(&damage(5_000_000_000)).await;
    for _ in 0..2 {
        let error = catalog.refresh(&database).await.unwrap_err();
        assert!(matches!(error, RepositoryError::Corrupt(_)), "{error}");
        assert!(catalog.freshness().error.is_some());
        assert_eq!((limit(&catalog, "one"), limit(&catalog, "two")), (100, 100));
    }
    console.run(&damage(8)).await;
    assert_eq!(catalog.refresh(&database).await.unwrap(), Refreshed::Changes(2));
    assert_eq!((limit(&catalog, "one"), limit(&catalog, "two")), (8, 7));
}

async fn applying_changes_equals_loading_all_rules(home: &Home) {
    let replicas = [home.migrated().await, home.open()];
    let catalogs = [catalog(), catalog()];
    for (replica, catalog) in replicas.iter().zip(&catalogs) {
        catalog.refresh(replica).await.unwrap();
    }
    for round in 0..12_usize {
        let database = &replicas[round % 2];
        fill(database, round * 10, 1 + round % 3).await;
        let (_, rules) = database.load().await.unwrap();
        let victim = &rules[round * 7 % rules.len()];
        let change = if round % 3 == 0 {
            RuleChange::Delete(victim.id)
        } else {
            RuleChange::Update(victim.id, spec(&format!("changed{round}"), 1 + round as i64))
        };
        try_write(database, change, round as u64).await.unwrap();
        // The two catalogs take turns in being behind.
        let refreshed = catalogs[round % 2].refresh(database).await.unwrap();
        assert!(matches!(refreshed, Refreshed::Changes(_)), "{refreshed:?}");
    }
    let fresh = catalog();
    fresh.refresh(&replicas[0]).await.unwrap();
    for (replica, catalog) in replicas.iter().zip(&catalogs) {
        catalog.refresh(replica).await.unwrap();
        let (snapshot, all) = (catalog.load(), fresh.load());
        assert_eq!((snapshot.revision(), snapshot.len()), (all.revision(), all.len()));
        for rule in replica.load().await.unwrap().1 {
            assert_eq!(snapshot.rule(rule.id).unwrap().rule(), Some(&rule));
        }
    }
}
