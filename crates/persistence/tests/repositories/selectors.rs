//! Rules over attributes.

use headgate_ratelimit::{
    AuditFilter, AuditLog as _, Draft, Page, RateLimitRuleRepository as _, RepositoryError,
    RuleChange, RuleFilter, RuleSpec, Scope, SelectorDraft,
};
use serde_json::{Value as Json, json};

use crate::support::{Home, create, on_both, spec, try_write};

on_both!(
    rules_over_attributes_are_kept_as_they_were_written,
    names_of_rules_over_attributes_are_unique_per_window,
    invalid_conditions_fail_the_load_and_name_the_rule,
);

fn over_attributes(name: &str, when: Json, per: &[&str]) -> RuleSpec {
    let draft = Draft {
        name: name.to_owned().into(),
        limit: 10.into(),
        window_seconds: 60.into(),
        selector: SelectorDraft {
            when: when.into(),
            per: per.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>().into(),
            priority: 7.into(),
            stops: true.into(),
            ..SelectorDraft::default()
        },
        ..Draft::default()
    };
    draft.validate(None).unwrap()
}

async fn rules_over_attributes_are_kept_as_they_were_written(home: &Home) {
    let database = home.migrated().await;
    let when = json!({
        "path": ["/v1/*", "/v2"],
        "address": {"not_in": ["10.0.0.0/8"]},
        "size": {"min": 1.5, "max": 9},
        "user": {"regex": "[a-z]+'\"\\\\"},
    });
    let spec_one = over_attributes("exports", when.clone(), &["tenant", "user"]);
    let created = create(&database, spec_one.clone(), 0).await;
    assert_eq!(created.spec, spec_one);
    let subjects = create(&database, spec("u1", 60), 1).await;
    assert_eq!(database.get(created.id).await.unwrap(), Some(created.clone()));

    let (revision, mut loaded) = database.load().await.unwrap();
    loaded.sort_by_key(|rule| rule.created_at);
    assert_eq!(loaded, [created.clone(), subjects.clone()]);
    let filter = RuleFilter { scope: Some(Scope::Attributes), ..RuleFilter::default() };
    let (_, listed) = database.list(&filter, Page::DEFAULT).await.unwrap();
    assert_eq!(listed.items, std::slice::from_ref(&created));

    // A replica sees the change, and the audit log has the conditions.
    let changed = over_attributes("exports", json!({}), &[]);
    let changed = try_write(&database, RuleChange::Update(created.id, changed), 2).await.unwrap();
    let delta = database.changes(revision).await.unwrap().unwrap();
    assert_eq!(delta.changed, [changed]);
    let audit = database.entries(&AuditFilter::default(), Page::DEFAULT).await.unwrap();
    let update = audit.items.into_iter().find(|entry| entry.action == "rule.update");
    let before: Json = serde_json::from_str(&update.unwrap().before.unwrap()).unwrap();
    assert_eq!((&before["when"], &before["per"]), (&when, &json!(["tenant", "user"])));
}

async fn names_of_rules_over_attributes_are_unique_per_window(home: &Home) {
    let database = home.migrated().await;
    create(&database, over_attributes("exports", json!({}), &["a"]), 0).await;
    let twin = over_attributes("exports", json!({"b": "c"}), &[]);
    let error = try_write(&database, RuleChange::Create(twin), 1).await.unwrap_err();
    assert!(matches!(error, RepositoryError::Exists { scope: Scope::Attributes, .. }), "{error}");
    let mut hour = over_attributes("exports", json!({}), &["a"]);
    hour.window_seconds = 3600;
    create(&database, hour, 2).await;
}

async fn invalid_conditions_fail_the_load_and_name_the_rule(home: &Home) {
    let database = home.migrated().await;
    let rule = create(&database, over_attributes("exports", json!({}), &[]), 0).await;
    let mut console = home.console().await;
    for selector in ["{", "{}", r#"{"when":{"a":true},"per":[],"priority":0,"stops":false}"#] {
        let sql = format!("UPDATE rate_limit_rules SET selector = '{selector}'");
        assert_eq!(console.run(&sql).await, 1);
        let error = database.load().await.unwrap_err();
        let RepositoryError::Corrupt(why) = &error else { panic!("{error}") };
        assert!(why.contains(&rule.id.to_string()), "{why}");
    }
}
