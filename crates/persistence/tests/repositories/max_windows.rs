//! The maximum number of windows of one scope and pattern.

use headgate_ratelimit::{RateLimitRule, RateLimitRuleRepository, RepositoryError, RuleChange};
use tokio::task::JoinSet;

use crate::support::{Home, author, create, everything, on_both, spec, try_write};

on_both!(
    rejects_rules_beyond_the_maximum_of_windows,
    concurrent_writers_cannot_exceed_the_maximum_of_windows,
    existing_rules_beyond_the_maximum_of_windows_are_kept,
);

const MAX: i64 = RateLimitRule::MAX_WINDOWS as i64;

fn is_too_many_windows<T>(result: &Result<T, RepositoryError>) -> bool {
    matches!(result, Err(RepositoryError::TooManyWindows { pattern, .. }) if pattern.to_string() == "u1")
}

async fn rejects_rules_beyond_the_maximum_of_windows(home: &Home) {
    let database = home.migrated().await;
    let mut rules = Vec::new();
    for window in 1..=MAX {
        rules.push(create(&database, spec("u1", window), 0).await);
    }
    let other = create(&database, spec("u2", 60), 0).await;
    let before = everything(&database).await;
    let moves = RuleChange::Update(other.id, spec("u1", 60));
    for change in [RuleChange::Create(spec("u1", 60)), moves.clone()] {
        let refused = try_write(&database, change, 1).await;
        assert!(is_too_many_windows(&refused), "{refused:?}");
        assert_eq!(everything(&database).await, before);
    }

    // Only the result of all changes counts, not their order.
    let swap = [moves, RuleChange::Delete(rules[0].id)];
    database.write(&swap, &author(2)).await.unwrap();
    let longer = RuleChange::Update(rules[1].id, spec("u1", 1_000));
    try_write(&database, longer, 3).await.unwrap();
}

async fn concurrent_writers_cannot_exceed_the_maximum_of_windows(home: &Home) {
    let replicas = [home.migrated().await, home.open()];
    for window in 1..MAX {
        create(&replicas[0], spec("u1", window), 0).await;
    }
    let mut writes = JoinSet::new();
    for number in 0..4 {
        let replica = replicas[number % 2].clone();
        let change = RuleChange::Create(spec("u1", 100 + number as i64));
        writes.spawn(async move { try_write(&replica, change, 0).await });
    }
    let results = writes.join_all().await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
    assert_eq!(
        results.iter().filter(|result| is_too_many_windows(result)).count(),
        3,
        "{results:?}"
    );
}

async fn existing_rules_beyond_the_maximum_of_windows_are_kept(home: &Home) {
    let database = home.migrated().await;
    for (pattern, window) in (1..=MAX).map(|window| ("u1", window)).chain([("u2", 60)]) {
        create(&database, spec(pattern, window), 0).await;
    }
    let mut console = home.console().await;
    console.run("UPDATE rate_limit_rules SET identifier_pattern = 'u1'").await;
    let rule = database.load().await.unwrap().1.swap_remove(0);
    let mut changed = rule.spec.clone();
    changed.limit = 7;
    try_write(&database, RuleChange::Update(rule.id, changed), 1).await.unwrap();
    let refused = try_write(&database, RuleChange::Create(spec("u1", 1_000)), 2).await;
    assert!(is_too_many_windows(&refused), "{refused:?}");
    create(&database, spec("u3", 60), 3).await;
}
