//! Batches of changes.

use headgate_ratelimit::{RateLimitRuleRepository, RepositoryError, RuleChange, RuleId};

use crate::support::{Home, author, create, everything, on_both, spec};

on_both!(
    a_failed_batch_changes_nothing,
    a_batch_can_delete_and_recreate_a_rule,
    two_rules_can_swap_patterns,
    duplicates_within_a_batch_are_rejected,
    a_rule_can_change_twice_in_a_batch,
);

async fn a_failed_batch_changes_nothing(home: &Home) {
    let database = home.migrated().await;
    let rule = create(&database, spec("u1", 60), 0).await;
    let gone = create(&database, spec("u2", 60), 0).await;
    create(&database, spec("u3", 60), 0).await;
    let before = everything(&database).await;
    let good = [
        RuleChange::Create(spec("u4", 60)),
        RuleChange::Update(rule.id, spec("u5", 60)),
        RuleChange::Delete(gone.id),
    ];
    for last in [RuleChange::Create(spec("u3", 60)), RuleChange::Delete(RuleId::random())] {
        let mut changes = good.to_vec();
        changes.push(last);
        database.write(&changes, &author(1)).await.unwrap_err();
        assert_eq!(everything(&database).await, before);
    }

    let written = database.write(&good, &author(1)).await.unwrap();
    let patterns = written.iter().map(|rule| rule.spec.identifier_pattern.to_string());
    assert_eq!(patterns.collect::<Vec<_>>(), ["u4", "u5", "u2"]);
    // One write is one revision.
    assert_eq!(everything(&database).await.0, before.0 + 1);
}

async fn a_batch_can_delete_and_recreate_a_rule(home: &Home) {
    let database = home.migrated().await;
    let rule = create(&database, spec("u1", 60), 0).await;
    let changes = [RuleChange::Delete(rule.id), RuleChange::Create(spec("u1", 60))];
    let written = database.write(&changes, &author(1)).await.unwrap();
    assert_eq!(written[0], rule);
    assert_ne!(written[1].id, rule.id);
    assert_eq!(database.load().await.unwrap().1, written[1..]);
}

async fn two_rules_can_swap_patterns(home: &Home) {
    let database = home.migrated().await;
    let one = create(&database, spec("u1", 60), 0).await;
    let two = create(&database, spec("u2", 30), 0).await;
    let swap = [
        RuleChange::Update(one.id, two.spec.clone()),
        RuleChange::Update(two.id, one.spec.clone()),
    ];
    database.write(&swap, &author(1)).await.unwrap();
    assert_eq!(database.get(one.id).await.unwrap().unwrap().spec, two.spec);
    assert_eq!(database.get(two.id).await.unwrap().unwrap().spec, one.spec);
    let (.., audit) = everything(&database).await;
    assert!(audit[1].before.as_ref().unwrap().contains("\"identifier_pattern\":\"u1\""));
}

async fn duplicates_within_a_batch_are_rejected(home: &Home) {
    let database = home.migrated().await;
    let duplicates = [RuleChange::Create(spec("u1", 60)), RuleChange::Create(spec("u1", 60))];
    let error = database.write(&duplicates, &author(0)).await.unwrap_err();
    assert!(matches!(error, RepositoryError::Exists { window_seconds: 60, .. }), "{error}");
    assert!(everything(&database).await.1.is_empty());
}

async fn a_rule_can_change_twice_in_a_batch(home: &Home) {
    let database = home.migrated().await;
    let rule = create(&database, spec("u1", 60), 0).await;
    let changes = [
        RuleChange::Update(rule.id, spec("u2", 60)),
        RuleChange::Update(rule.id, spec("u3", 60)),
        RuleChange::Delete(rule.id),
    ];
    let written = database.write(&changes, &author(1)).await.unwrap();
    assert_eq!(written[2].spec, spec("u3", 60));
    let (_, rules, audit) = everything(&database).await;
    assert!(rules.is_empty());
    assert_eq!(audit[0].before, audit[1].after);
    assert_eq!(audit[1].before, audit[2].after);
    assert_eq!(audit[2].before, audit[3].after);

    let rule = create(&database, spec("u1", 60), 2).await;
    let twice = [RuleChange::Delete(rule.id), RuleChange::Delete(rule.id)];
    let error = database.write(&twice, &author(3)).await.unwrap_err();
    assert!(matches!(error, RepositoryError::NotFound(id) if id == rule.id), "{error}");
}
