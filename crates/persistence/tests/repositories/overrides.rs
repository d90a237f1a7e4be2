//! Overrides of single subjects, and limits by plan.

use headgate::Timestamp;
use headgate_persistence::Database;
use headgate_ratelimit::{
    AuditFilter, AuditLog as _, Draft, OverrideFilter, OverrideId, OverrideRepository as _,
    OverrideSpec, OverrideSubject, Page, RateLimitRule, RateLimitRuleRepository as _,
    RepositoryError, RuleChange, RuleId, RuleOverride, SelectorDraft,
};
use serde_json::{Value as Json, json};

use crate::support::{Home, at, author, create, on_both, revision, spec, try_write};

on_both!(
    overrides_are_kept_replaced_and_deleted,
    replicas_read_only_changed_overrides,
    overrides_are_deleted_with_their_rule,
    overrides_are_listed_by_rule_subject_and_end,
    overrides_that_ended_long_ago_are_deleted,
    limits_by_plan_are_kept,
);

fn override_of(rule: RuleId, tenant: &str, limit: u32, until: Option<Timestamp>) -> OverrideSpec {
    let subject = OverrideSubject::parse(&json!({"tenant": tenant, "user": "u'1"})).unwrap();
    OverrideSpec { rule, subject, limit, until, reason: Some("launch".to_owned()) }
}

async fn set(database: &Database, spec: &OverrideSpec, millis: u64) -> (RuleOverride, bool) {
    database.set_override(spec, &author(millis)).await.unwrap()
}

async fn overrides_are_kept_replaced_and_deleted(home: &Home) {
    let database = home.migrated().await;
    let rule = create(&database, spec("u1", 60), 0).await;
    let first = override_of(rule.id, "acme", 5000, Some(at(60_000)));
    let (one, is_new) = set(&database, &first, 1).await;
    assert_eq!((&one.spec, is_new, one.created_at), (&first, true, at(1)));
    assert_eq!(database.load_overrides().await.unwrap(), std::slice::from_ref(&one));
    assert_eq!(database.get_override(one.id).await.unwrap(), Some(one.clone()));

    let second = OverrideSpec { limit: 7, until: None, reason: None, ..first.clone() };
    let (other, is_new) = set(&database, &second, 0).await;
    assert_eq!((other.id, &other.spec, is_new), (one.id, &second, false));
    assert!(other.updated_at > one.updated_at);
    assert_eq!(database.load_overrides().await.unwrap(), std::slice::from_ref(&other));

    assert_eq!(database.delete_override(one.id, &author(3)).await.unwrap(), other);
    assert!(database.load_overrides().await.unwrap().is_empty());
    let error = database.delete_override(one.id, &author(4)).await.unwrap_err();
    assert!(matches!(error, RepositoryError::NoSuchOverride(id) if id == one.id), "{error}");
    let unknown = override_of(RuleId::random(), "acme", 1, None);
    let error = database.set_override(&unknown, &author(5)).await.unwrap_err();
    assert!(matches!(error, RepositoryError::NotFound(_)), "{error}");

    let filter = AuditFilter { target: Some(one.id.to_string()), ..AuditFilter::default() };
    let audit = database.entries(&filter, Page::DEFAULT).await.unwrap().items;
    let actions: Vec<&str> = audit.iter().map(|entry| &*entry.action).collect();
    assert_eq!(actions, ["override.delete", "override.set", "override.set"]);
    let after: Json = serde_json::from_str(audit[2].after.as_deref().unwrap()).unwrap();
    assert_eq!((&after["limit"], &after["subject"]["tenant"]), (&json!(5000), &json!("acme")));
    assert_eq!(audit[2].reason.as_deref(), Some("launch"));
    assert_eq!(audit[1].before.as_ref(), audit[2].after.as_ref());
}

async fn replicas_read_only_changed_overrides(home: &Home) {
    let database = home.migrated().await;
    let replica = home.open();
    let rule = create(&database, spec("u1", 60), 0).await;
    let (kept, _) = set(&database, &override_of(rule.id, "kept", 1, None), 1).await;
    let (gone, _) = set(&database, &override_of(rule.id, "gone", 2, None), 2).await;
    let seen = revision(&replica).await;
    let (new, _) = set(&database, &override_of(rule.id, "new", 3, None), 3).await;
    database.delete_override(gone.id, &author(4)).await.unwrap();
    let changed =
        try_write(&database, RuleChange::Update(rule.id, spec("u1", 30)), 5).await.unwrap();

    let delta = replica.changes(seen).await.unwrap().unwrap();
    assert_eq!(delta.revision.0, seen.0 + 3);
    assert_eq!((delta.changed, delta.overrides), (vec![changed], vec![new.clone()]));
    assert_eq!(delta.deleted_overrides, [gone.id]);
    let mut all = replica.load_overrides().await.unwrap();
    all.sort_by_key(|one| one.created_at);
    assert_eq!(all, [kept, new]);
}

async fn overrides_are_deleted_with_their_rule(home: &Home) {
    let database = home.migrated().await;
    let rules: Vec<RateLimitRule> = vec![
        create(&database, spec("u1", 60), 0).await,
        create(&database, spec("u2", 60), 1).await,
    ];
    let (gone, _) = set(&database, &override_of(rules[0].id, "acme", 1, None), 2).await;
    let (kept, _) = set(&database, &override_of(rules[1].id, "acme", 2, None), 3).await;
    let seen = revision(&database).await;
    try_write(&database, RuleChange::Delete(rules[0].id), 4).await.unwrap();
    let delta = database.changes(seen).await.unwrap().unwrap();
    assert_eq!((delta.deleted, delta.deleted_overrides), (vec![rules[0].id], vec![gone.id]));
    assert_eq!(database.load_overrides().await.unwrap(), [kept]);
    let mut console = home.console().await;
    assert_eq!(console.run("DELETE FROM rate_limit_overrides").await, 1);
}

async fn overrides_are_listed_by_rule_subject_and_end(home: &Home) {
    let database = home.migrated().await;
    let one = create(&database, spec("u1", 60), 0).await;
    let two = create(&database, spec("u2", 60), 0).await;
    let mut ids: Vec<OverrideId> = Vec::new();
    for (i, (rule, tenant)) in [(&one, "Acme"), (&two, "acme"), (&one, "100%")].iter().enumerate() {
        let until = Some(at(1000 * (i as u64 + 1)));
        ids.push(set(&database, &override_of(rule.id, tenant, 5, until), i as u64 + 1).await.0.id);
    }
    let list = async |filter: OverrideFilter| {
        let listed = database.list_overrides(&filter, Page::DEFAULT).await.unwrap();
        assert_eq!(listed.items.len() as u64, listed.total);
        listed.items.into_iter().map(|one| one.id).collect::<Vec<_>>()
    };
    let all = OverrideFilter::default();
    assert_eq!(list(all.clone()).await, [ids[2], ids[1], ids[0]]);
    assert_eq!(list(OverrideFilter { rule: Some(one.id), ..all.clone() }).await, [ids[2], ids[0]]);
    let search = |text: &str| OverrideFilter { search: Some(text.to_owned()), ..all.clone() };
    assert_eq!(list(search("ACME")).await, [ids[1], ids[0]]);
    assert_eq!(list(search("0%")).await, [ids[2]]);
    let active = OverrideFilter { active_at: Some(at(2000)), ..all.clone() };
    assert_eq!(list(active).await, [ids[2]]);
    let page = database.list_overrides(&all, Page::new(2, 2).unwrap()).await.unwrap();
    assert_eq!((page.items[0].id, page.total), (ids[0], 3));
}

async fn overrides_that_ended_long_ago_are_deleted(home: &Home) {
    const DAY: u64 = 24 * 3600 * 1000;
    let database = home.migrated().await;
    let rule = create(&database, spec("u1", 60), 0).await;
    let (old, _) = set(&database, &override_of(rule.id, "old", 1, Some(at(DAY))), 1).await;
    let (recent, _) =
        set(&database, &override_of(rule.id, "recent", 1, Some(at(9 * DAY))), 2).await;
    let seen = revision(&database).await;
    let (new, _) = set(&database, &override_of(rule.id, "new", 1, None), 32 * DAY).await;
    let delta = database.changes(seen).await.unwrap().unwrap();
    assert_eq!((delta.overrides, delta.deleted_overrides), (vec![new.clone()], vec![old.id]));
    let mut all = database.load_overrides().await.unwrap();
    all.sort_by_key(|one| one.created_at);
    assert_eq!(all, [recent, new]);
}

async fn limits_by_plan_are_kept(home: &Home) {
    let database = home.migrated().await;
    let limits = json!({"by": "plan", "free": 100, "pro's": 1000, "default": 50});
    let draft = Draft {
        name: "api".to_owned().into(),
        window_seconds: 60.into(),
        selector: SelectorDraft {
            per: vec!["tenant".to_owned()].into(),
            limits: limits.clone().into(),
            ..SelectorDraft::default()
        },
        ..Draft::default()
    };
    let created = create(&database, draft.validate(None).unwrap(), 0).await;
    assert_eq!(created.spec.limit, 50);
    assert_eq!(database.load().await.unwrap().1, std::slice::from_ref(&created));
    let audit = database.entries(&AuditFilter::default(), Page::DEFAULT).await.unwrap().items;
    let after: Json = serde_json::from_str(audit[0].after.as_deref().unwrap()).unwrap();
    assert_eq!((&after["limit"], after.get("limits")), (&limits, None));
    // An older version of the server knows the number only.
    let mut console = home.console().await;
    let old = "UPDATE rate_limit_rules SET name = 'api' WHERE limit_count = 50";
    assert_eq!(console.run(old).await, 1);
}
