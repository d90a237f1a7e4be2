//! The audit log.

use headgate_ratelimit::{AuditEntry, AuditFilter, AuditLog, Author, Page, RuleChange};
use headgate_service_config::{ConfigUpdate, ServiceConfigRepository};

use crate::support::{Home, at, author, create, everything, on_both, spec, try_write};

on_both!(
    changes_are_recorded_with_before_and_after,
    entries_are_filtered_and_paged_newest_first,
    resets_can_be_recorded,
    settling_updates_the_outcome,
    pruning_deletes_old_entries_in_batches,
    pruning_an_action_leaves_other_entries,
);

async fn changes_are_recorded_with_before_and_after(home: &Home) {
    let database = home.migrated().await;
    let rule = create(&database, spec("u1", 60), 1).await;
    try_write(&database, RuleChange::Update(rule.id, spec("u2", 60)), 2).await.unwrap();
    try_write(&database, RuleChange::Delete(rule.id), 3).await.unwrap();

    let (.., audit) = everything(&database).await;
    let recorded: Vec<_> = audit.iter().rev().map(|e| (&*e.action, &e.author)).collect();
    let [one, two, three] = [author(1), author(2), author(3)];
    assert_eq!(recorded, [("rule.create", &one), ("rule.update", &two), ("rule.delete", &three)]);
    assert!(audit.iter().all(|entry| entry.target == rule.id.to_string()));
    assert!(audit.is_sorted_by(|later, earlier| later.id > earlier.id));

    let [deleted, updated, created] = audit.try_into().unwrap();
    assert_eq!((created.before, deleted.after), (None, None));
    assert_eq!((updated.before, deleted.before), (created.after.clone(), updated.after.clone()));
    let object: serde_json::Value = serde_json::from_str(&created.after.unwrap()).unwrap();
    let expected = serde_json::json!({
        "name": null, "scope": "user", "identifier_pattern": "u1", "limit": 100,
        "window_seconds": 60, "algorithm": "token_bucket", "burst": null, "fail_mode": null,
        "lease": null, "enabled": true,
    });
    assert_eq!(object, expected);
    assert!(updated.after.unwrap().contains("\"u2\""));
}

async fn entries_are_filtered_and_paged_newest_first(home: &Home) {
    let database = home.migrated().await;
    for number in 0..6_u64 {
        let actor = if number % 2 == 0 { "ada" } else { "bob" };
        let mut entry = reset(actor, number);
        entry.target = format!("user:u{}", number / 3);
        if number == 5 {
            entry.action.push_str(".all");
        }
        database.record(&entry).await.unwrap();
    }
    let find = async |filter: AuditFilter| {
        let found = database.entries(&filter, Page::DEFAULT).await.unwrap();
        assert_eq!(found.total, found.items.len() as u64);
        found.items.iter().map(|e| e.author.request_id.clone()).collect::<Vec<_>>().join(" ")
    };
    let any = AuditFilter::default;
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(find(any()).await, "r5 r4 r3 r2 r1 r0");
    assert_eq!(find(AuditFilter { actor: text("ada"), ..any() }).await, "r4 r2 r0");
    assert_eq!(find(AuditFilter { action: text("counter.reset.all"), ..any() }).await, "r5");
    assert_eq!(find(AuditFilter { target: text("user:u0"), ..any() }).await, "r2 r1 r0");
    assert_eq!(find(AuditFilter { since: Some(at(4)), ..any() }).await, "r5 r4");
    assert_eq!(find(AuditFilter { until: Some(at(2)), ..any() }).await, "r1 r0");
    let both = AuditFilter { actor: text("bob"), since: Some(at(1)), until: Some(at(4)), ..any() };
    assert_eq!(find(both).await, "r3 r1");
    assert_eq!(find(AuditFilter { actor: text("ad"), ..any() }).await, "");

    let page = database.entries(&any(), Page::new(2, 4).unwrap()).await.unwrap();
    let on_it: Vec<_> = page.items.iter().map(|e| &*e.author.request_id).collect();
    assert_eq!((on_it, page.total, page.has_next()), (vec!["r1", "r0"], 6, false));
}

async fn resets_can_be_recorded(home: &Home) {
    let database = home.migrated().await;
    let mut entry = reset("ada", 7);
    entry.before = Some("{\"used\":5}".to_owned());
    entry.reason = Some("it's \"fine\" -- ユーザー".to_owned());
    database.record(&entry).await.unwrap();
    let mut nul = reset("a\0b", 8);
    nul.reason = Some("\0".to_owned());
    database.record(&nul).await.unwrap();

    let (.., audit) = everything(&database).await;
    assert_eq!(audit[1], AuditEntry { id: audit[1].id, ..entry });
    // Databases cannot store this character: it is replaced, and filters still find it.
    assert_eq!(audit[0].reason.as_deref(), Some("\u{FFFD}"));
    let filter = AuditFilter { actor: Some("a\0b".to_owned()), ..AuditFilter::default() };
    assert_eq!(database.entries(&filter, Page::DEFAULT).await.unwrap().total, 1);
}

async fn settling_updates_the_outcome(home: &Home) {
    let database = home.migrated().await;
    let begun = AuditEntry { after: Some("{}".to_owned()), ..reset("ada", 1) };
    let [first, second] =
        [database.record(&begun).await.unwrap(), database.record(&begun).await.unwrap()];
    database.settle(first, None).await.unwrap();
    database.settle(second, Some("{\"outcome\":\"not_done\"}")).await.unwrap();
    let (.., audit) = everything(&database).await;
    let recorded: Vec<_> = audit.iter().map(|entry| (entry.id, entry.after.as_deref())).collect();
    assert_eq!(recorded, [(second, Some("{\"outcome\":\"not_done\"}")), (first, None)]);
}

async fn pruning_deletes_old_entries_in_batches(home: &Home) {
    let database = home.migrated().await;
    database.record(&reset("ada", 0)).await.unwrap();
    let (numbers, columns) = match home {
        Home::Sqlite(_) => (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5001)",
            "SELECT occurred_at, actor, request_id, action, target FROM audit_log, n",
        ),
        Home::Postgres(_) => (
            "",
            "SELECT occurred_at, actor, request_id, action, target
             FROM audit_log, generate_series(1, 5001)",
        ),
    };
    let many = format!(
        "INSERT INTO audit_log (occurred_at, actor, request_id, action, target) {numbers} {columns}"
    );
    assert_eq!(home.console().await.run(&many).await, 5_001);
    let kept = database.record(&reset("bob", 1)).await.unwrap();
    let documents = database.service_configs();
    for millis in [0, 1] {
        let update = ConfigUpdate {
            service: "relay".to_owned(),
            config: serde_json::json!({"number": millis}),
            expected_version: None,
        };
        documents.put(&update, &author(millis)).await.unwrap();
    }

    assert_eq!(database.prune(at(0)).await.unwrap(), 0);
    assert_eq!(database.prune(at(1)).await.unwrap(), 5_002 + 1);
    let (.., audit) = everything(&database).await;
    assert_eq!(audit.iter().map(|entry| entry.id).collect::<Vec<_>>(), [kept]);
    assert_eq!(
        documents.changes(&headgate_service_config::AuditFilter::default()).await.unwrap().len(),
        1
    );
}

async fn pruning_an_action_leaves_other_entries(home: &Home) {
    let database = home.migrated().await;
    let mut recorded = Vec::new();
    for (action, millis) in [("report.submit", 0), ("report.submit", 1), ("other", 0)] {
        let entry = AuditEntry { action: action.to_owned(), ..reset("ada", millis) };
        recorded.push(database.record(&entry).await.unwrap());
    }
    assert_eq!(database.prune_action("report.submit", at(1)).await.unwrap(), 1);
    assert_eq!(database.prune_action("report.submit", at(1)).await.unwrap(), 0);
    let (.., audit) = everything(&database).await;
    let left: Vec<_> = audit.iter().rev().map(|entry| entry.id).collect();
    assert_eq!(left, recorded[1..]);
}

/// The entry of a reset by `actor`.
fn reset(actor: &str, millis: u64) -> AuditEntry {
    let request_id = format!("r{millis}");
    AuditEntry {
        id: 0,
        author: Author { actor: actor.to_owned(), request_id, at: at(millis) },
        action: "counter.reset".to_owned(),
        target: "user:u1".to_owned(),
        before: None,
        after: None,
        reason: None,
    }
}
