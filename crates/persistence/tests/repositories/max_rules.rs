//! The maximum number of rules.

use headgate_ratelimit::{RateLimitRuleRepository, RepositoryError, RuleChange};
use tokio::task::JoinSet;

use crate::support::{Home, author, create, everything, on_both, spec, try_write};

on_both!(
    rejects_rules_beyond_the_maximum,
    concurrent_writers_cannot_exceed_the_maximum,
    existing_rules_beyond_the_maximum_are_kept,
);

fn is_full<T>(result: &Result<T, RepositoryError>) -> bool {
    matches!(result, Err(RepositoryError::TooManyRules { max: 3 }))
}

async fn rejects_rules_beyond_the_maximum(home: &Home) {
    home.migrated().await;
    let database = home.open_bounded(3);
    let first = create(&database, spec("u1", 60), 0).await;
    let create_all = |names: &[&str]| -> Vec<RuleChange> {
        names.iter().map(|name| RuleChange::Create(spec(name, 60))).collect()
    };
    database.write(&create_all(&["u2", "u3"]), &author(1)).await.unwrap();
    let before = everything(&database).await;
    let refused = try_write(&database, RuleChange::Create(spec("u4", 60)), 2).await;
    assert!(is_full(&refused), "{refused:?}");
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("at most 3 rules") && error.contains("ratelimit.max_rules"), "{error}");
    assert_eq!(everything(&database).await, before);

    // A deletion makes room, in the same batch or before.
    let swap = [RuleChange::Create(spec("u4", 60)), RuleChange::Delete(first.id)];
    let written = database.write(&swap, &author(3)).await.unwrap();
    try_write(&database, RuleChange::Delete(written[0].id), 4).await.unwrap();
    create(&database, spec("u5", 60), 5).await;
    // Direct writes to the database are not counted until the next revision by another server.
    let mut console = home.console().await;
    console
        .run(
            "DELETE FROM rate_limit_rules;
             UPDATE revisions SET revision = revision + 1 WHERE name = 'rate_limit_rules'",
        )
        .await;
    database.write(&create_all(&["u1", "u2", "u3"]), &author(6)).await.unwrap();
    let refused = database.write(&create_all(&["u4"]), &author(7)).await;
    assert!(is_full(&refused), "{refused:?}");
}

async fn concurrent_writers_cannot_exceed_the_maximum(home: &Home) {
    home.migrated().await;
    let replicas = [home.open_bounded(3), home.open_bounded(3)];
    create(&replicas[0], spec("u1", 60), 0).await;
    create(&replicas[1], spec("u2", 60), 0).await;
    let mut writes = JoinSet::new();
    for number in 0..4 {
        let replica = replicas[number % 2].clone();
        let change = RuleChange::Create(spec(&format!("v{number}"), 60));
        writes.spawn(async move { try_write(&replica, change, 0).await });
    }
    let results = writes.join_all().await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
    assert_eq!(results.iter().filter(|result| is_full(result)).count(), 3, "{results:?}");
    assert_eq!(replicas[0].load().await.unwrap().1.len(), 3);
}

async fn existing_rules_beyond_the_maximum_are_kept(home: &Home) {
    let database = home.migrated().await;
    for name in ["u1", "u2", "u3", "u4", "u5"] {
        create(&database, spec(name, 60), 0).await;
    }
    let bounded = home.open_bounded(3);
    let (_, rules) = bounded.load().await.unwrap();
    assert_eq!(rules.len(), 5);
    let changed = RuleChange::Update(rules[0].id, spec("changed", 60));
    try_write(&bounded, changed, 1).await.unwrap();
    try_write(&bounded, RuleChange::Delete(rules[1].id), 2).await.unwrap();
    let refused = try_write(&bounded, RuleChange::Create(spec("new", 60)), 3).await;
    assert!(is_full(&refused), "{refused:?}");
    let swap = [RuleChange::Delete(rules[2].id), RuleChange::Create(spec("new", 60))];
    bounded.write(&swap, &author(4)).await.unwrap();
}
