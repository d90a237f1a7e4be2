//! Single rules.

use headgate_ratelimit::{
    Draft, LeaseDraft, Page, RateLimitRuleRepository, RepositoryError, RuleChange, RuleFilter,
    RuleId, Scope,
};

use crate::support::{
    Home, at, author, create, draft, everything, on_both, revision, spec, try_write,
};

on_both!(
    rules_round_trip,
    lists_are_filtered_and_paged_newest_first,
    an_update_keeps_the_creation_time,
    a_conditional_update_fails_after_another_change,
    a_conditional_deletion_fails_after_another_change,
    search_matches_names_and_patterns,
    a_deletion_returns_the_rule_once,
    changes_of_an_unknown_rule_fail,
    duplicate_rules_are_rejected,
    every_write_increases_the_revision,
    an_invalid_row_is_reported_with_its_id,
    a_lease_is_shortened_with_the_window_that_an_older_server_shortens,
);

async fn rules_round_trip(home: &Home) {
    let database = home.migrated().await;
    let full = Draft {
        name: "ユーザー's \"limit\"".to_owned().into(),
        algorithm: "leaky_bucket".to_owned().into(),
        burst: 7.into(),
        fail_mode: "local".to_owned().into(),
        lease: LeaseDraft { share_percent: 10.into(), hold_ms: 200.into() }.into(),
        enabled: false.into(),
        limit: i64::from(u32::MAX).into(),
        ..draft(&"é".repeat(255), 3600)
    };
    let full = full.validate(None).unwrap();
    let unleased = LeaseDraft { share_percent: 0.into(), ..LeaseDraft::default() };
    let unleased = Draft { lease: unleased.into(), ..draft("unleased", 60) };
    for spec in [full, unleased.validate(None).unwrap(), spec("*", 1)] {
        let rule = create(&database, spec.clone(), 5).await;
        assert_eq!(rule.spec, spec);
        assert_eq!((rule.created_at, rule.updated_at), (at(5), at(5)));
        assert_eq!(database.get(rule.id).await.unwrap(), Some(rule.clone()));
        assert!(database.load().await.unwrap().1.contains(&rule));
    }
    assert_eq!(database.get(RuleId::random()).await.unwrap(), None);
}

async fn lists_are_filtered_and_paged_newest_first(home: &Home) {
    let database = home.migrated().await;
    let mut expected = Vec::new();
    for number in 0..7 {
        let scope = Scope::ALL[number % 3].name().to_owned();
        let spec = Draft { scope: scope.into(), enabled: (number != 3).into(), ..draft("*", 60) };
        let spec = Draft { window_seconds: (number as i64 + 1).into(), ..spec };
        // Some have the same creation time.
        let rule = create(&database, spec.validate(None).unwrap(), number as u64 / 2).await;
        expected.push(rule);
    }
    expected.sort_by_key(|rule| (std::cmp::Reverse(rule.created_at), rule.id));

    let list = async |filter: RuleFilter, page, size| {
        database.list(&filter, Page::new(page, size).unwrap()).await.unwrap().1
    };
    let everything = RuleFilter::default();
    let first = list(everything.clone(), 1, 3).await;
    assert_eq!((&*first.items, first.total, first.has_next()), (&expected[..3], 7, true));
    assert_eq!(list(everything.clone(), 2, 3).await.items, expected[3..6]);
    let third = list(everything.clone(), 3, 3).await;
    assert_eq!((&*third.items, third.has_next()), (&expected[6..], false));
    let beyond = list(everything.clone(), u32::MAX, 100).await;
    assert_eq!((beyond.items.len(), beyond.total), (0, 7));

    let services = RuleFilter { scope: Some(Scope::Service), ..everything };
    let mut of_services = expected.clone();
    of_services.retain(|rule| rule.spec.scope == Scope::Service);
    let listed = list(services.clone(), 1, 20).await;
    assert_eq!((listed.items, listed.total), (of_services, 3));
    let enabled = list(RuleFilter { enabled_only: true, ..services }, 1, 20).await;
    assert_eq!(enabled.total, 2);
    assert!(enabled.items.iter().all(|rule| rule.spec.enabled));
}

async fn an_update_keeps_the_creation_time(home: &Home) {
    let database = home.migrated().await;
    let rule = create(&database, spec("u1", 60), 0).await;
    let other = create(&database, spec("u2", 60), 0).await;

    let update = RuleChange::Update(rule.id, spec("u3", 30));
    let updated = try_write(&database, update, 1_500).await.unwrap();

    assert_eq!((updated.id, &updated.spec), (rule.id, &spec("u3", 30)));
    assert_eq!((updated.created_at, updated.updated_at), (at(0), at(1_500)));
    assert_eq!(database.get(rule.id).await.unwrap(), Some(updated));
    assert_eq!(database.get(other.id).await.unwrap(), Some(other));

    // Written by a replica whose clock is behind.
    let update = RuleChange::Update(rule.id, spec("u4", 30));
    let updated = try_write(&database, update, 900).await.unwrap();
    assert_eq!(updated.updated_at, at(1_501));
}

async fn a_conditional_update_fails_after_another_change(home: &Home) {
    let database = home.migrated().await;
    let seen = create(&database, spec("u1", 60), 0).await;
    // The same millisecond, but still another version of the rule.
    let first = RuleChange::UpdateIfUnchanged(seen.id, spec("u2", 60), seen.updated_at);
    let first = try_write(&database, first, 0).await.unwrap();
    assert_ne!(first.updated_at, seen.updated_at);

    let late = RuleChange::UpdateIfUnchanged(seen.id, spec("u3", 60), seen.updated_at);
    let refused = try_write(&database, late, 5).await.unwrap_err();
    assert!(matches!(refused, RepositoryError::Changed(id) if id == seen.id), "{refused}");
    assert_eq!(database.get(seen.id).await.unwrap(), Some(first));
}

async fn a_conditional_deletion_fails_after_another_change(home: &Home) {
    let database = home.migrated().await;
    let seen = create(&database, spec("u1", 60), 0).await;
    let update = RuleChange::Update(seen.id, spec("u2", 60));
    let updated = try_write(&database, update, 0).await.unwrap();

    let late = RuleChange::DeleteIfUnchanged(seen.id, seen.updated_at);
    let refused = try_write(&database, late, 5).await.unwrap_err();
    assert!(matches!(refused, RepositoryError::Changed(id) if id == seen.id), "{refused}");
    assert_eq!(database.get(seen.id).await.unwrap(), Some(updated.clone()));
    let delete = RuleChange::DeleteIfUnchanged(seen.id, updated.updated_at);
    assert_eq!(try_write(&database, delete, 6).await.unwrap(), updated);
    assert_eq!(database.get(seen.id).await.unwrap(), None);
}

async fn search_matches_names_and_patterns(home: &Home) {
    let database = home.migrated().await;
    for (name, pattern) in [("Free plan", "free-*"), ("100%_sure!", "x"), ("Other", "FREEZER")] {
        let named = Draft { name: name.to_owned().into(), ..draft(pattern, 60) };
        create(&database, named.validate(None).unwrap(), 0).await;
    }
    for (search, found) in [("FREE", 2), ("plan", 1), ("%_", 1), ("e!", 1), ("%", 1), ("zzz", 0)] {
        let filter = RuleFilter { search: Some(search.to_owned()), ..RuleFilter::default() };
        let (_, listed) = database.list(&filter, Page::DEFAULT).await.unwrap();
        assert_eq!((listed.items.len() as u64, listed.total), (found, found), "{search}");
    }
}

async fn a_deletion_returns_the_rule_once(home: &Home) {
    let database = home.migrated().await;
    let rule = create(&database, spec("u1", 60), 0).await;

    let deleted = try_write(&database, RuleChange::Delete(rule.id), 1).await.unwrap();

    assert_eq!(deleted, rule);
    assert_eq!(database.get(rule.id).await.unwrap(), None);
    let again = try_write(&database, RuleChange::Delete(rule.id), 2).await.unwrap_err();
    assert!(matches!(again, RepositoryError::NotFound(id) if id == rule.id), "{again}");
    create(&database, spec("u1", 60), 3).await;
}

async fn changes_of_an_unknown_rule_fail(home: &Home) {
    let database = home.migrated().await;
    create(&database, spec("u1", 60), 0).await;
    let before = everything(&database).await;
    let unknown = RuleId::random();
    for change in [RuleChange::Update(unknown, spec("u2", 60)), RuleChange::Delete(unknown)] {
        let error = try_write(&database, change, 1).await.unwrap_err();
        assert!(matches!(error, RepositoryError::NotFound(id) if id == unknown), "{error}");
    }
    assert_eq!(everything(&database).await, before);
}

async fn duplicate_rules_are_rejected(home: &Home) {
    let database = home.migrated().await;
    create(&database, spec("u1", 60), 0).await;
    let other = create(&database, spec("u1", 30), 0).await;
    let before = everything(&database).await;
    let twin = spec("u1", 60);
    for change in [RuleChange::Create(twin.clone()), RuleChange::Update(other.id, twin)] {
        let error = try_write(&database, change, 1).await.unwrap_err();
        let RepositoryError::Exists { scope, pattern, window_seconds } = error else {
            panic!("{error}");
        };
        assert_eq!((scope, &*pattern.to_string(), window_seconds), (Scope::User, "u1", 60));
    }
    assert_eq!(everything(&database).await, before);

    // A rule is no duplicate of itself.
    let same = Draft { limit: 5.into(), ..draft("u1", 30) }.validate(None).unwrap();
    try_write(&database, RuleChange::Update(other.id, same), 2).await.unwrap();
}

async fn every_write_increases_the_revision(home: &Home) {
    let database = home.migrated().await;
    let mut last = revision(&database).await;
    let rule = create(&database, spec("u1", 60), 0).await;
    let changes = [
        RuleChange::Update(rule.id, spec("u1", 60)),
        RuleChange::Create(spec("u2", 60)),
        RuleChange::Delete(rule.id),
    ];
    for change in changes {
        let before = revision(&database).await;
        assert!(before > last);
        last = before;
        assert_eq!(database.load().await.unwrap().0, last);
        try_write(&database, change, 1).await.unwrap();
    }
    let last = revision(&database).await;
    try_write(&database, RuleChange::Create(spec("u2", 60)), 2).await.unwrap_err();
    assert!(database.write(&[], &author(3)).await.unwrap().is_empty());
    database.migrate().await.unwrap();
    assert_eq!(revision(&database).await, last);
}

async fn a_lease_is_shortened_with_the_window_that_an_older_server_shortens(home: &Home) {
    let database = home.migrated().await;
    let lease = LeaseDraft { share_percent: 10.into(), hold_ms: 1000.into() };
    let draft = Draft { lease: lease.into(), ..draft("u1", 60) };
    let rule = create(&database, draft.validate(None).unwrap(), 0).await;
    home.console().await.run("UPDATE rate_limit_rules SET window_secs = 1").await;
    let read = database.get(rule.id).await.unwrap().unwrap();
    assert_eq!(read.spec.lease.unwrap().to_string(), "10%/100ms");
}

async fn an_invalid_row_is_reported_with_its_id(home: &Home) {
    let database = home.migrated().await;
    let good = create(&database, spec("good", 60), 0).await;
    let mut console = home.console().await;
    for damage in [
        "identifier_pattern = 'a*b'",
        "limit_count = 5000000000",
        "algorithm = 'fixed_window', burst = 5",
        "name = ''",
    ] {
        let bad = create(&database, spec("bad", 60), 0).await;
        let sql = format!("UPDATE rate_limit_rules SET {damage} WHERE id = '{}'", bad.id);
        console.run(&sql).await;

        let all = database.load().await.unwrap_err();
        let listed = database.list(&RuleFilter::default(), Page::DEFAULT).await.unwrap_err();
        let one = database.get(bad.id).await.unwrap_err();
        for error in [all, listed, one] {
            assert!(matches!(error, RepositoryError::Corrupt(_)), "{damage}: {error}");
            assert!(error.to_string().contains(&bad.id.to_string()), "{damage}: {error}");
        }
        assert_eq!(database.get(good.id).await.unwrap().as_ref(), Some(&good));
        console.run(&format!("DELETE FROM rate_limit_rules WHERE id = '{}'", bad.id)).await;
    }
    assert_eq!(database.load().await.unwrap().1, [good]);
}
