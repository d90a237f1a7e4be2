use std::time::Duration;

use headgate::{BatchLimiter, FailMode, LeasePolicy, Limit, ManualClock, Timestamp};
use headgate_store_memory::MemoryStore;
use serde_json::{Value as Json, json};

use super::*;
use crate::{Catalog, Defaults, Draft, RateLimitRule, Revision, RuleId, Selector};

/// Rules in JSON, as in REST.
fn rule(fields: &Json) -> RateLimitRule {
    let text = |name: &str| fields[name].as_str().map(str::to_owned);
    let mut draft = Draft {
        limit: fields["limit"].as_i64().unwrap().into(),
        window_seconds: fields["window"].as_i64().unwrap_or(60).into(),
        enabled: fields["enabled"].as_bool().unwrap_or(true).into(),
        ..Draft::default()
    };
    draft.name = text("name").map_or(crate::Input::Missing, Into::into);
    draft.scope = text("scope").map_or(crate::Input::Missing, Into::into);
    draft.identifier_pattern = text("pattern").map_or(crate::Input::Missing, Into::into);
    if draft.scope == crate::Input::Missing {
        let per = fields["per"].as_array().into_iter().flatten();
        draft.selector.per =
            per.map(|name| name.as_str().unwrap().to_owned()).collect::<Vec<_>>().into();
        draft.selector.when = fields.get("when").cloned().unwrap_or(json!({})).into();
        draft.selector.priority = fields["priority"].as_i64().unwrap_or(0).into();
        draft.selector.stops = fields["stops"].as_bool().unwrap_or(false).into();
    }
    let (spec, now) = (draft.validate(None).unwrap(), Timestamp::from_micros(1));
    RateLimitRule { id: RuleId::random(), spec, created_at: now, updated_at: now }
}

fn checks(rules: &[Json]) -> CheckRateLimit {
    let defaults = Defaults {
        limit: Limit::token_bucket(100, Duration::from_secs(60)).unwrap(),
        window_seconds: 60,
        fail_mode: FailMode::Open,
        lease: LeasePolicy::OFF,
    };
    let clock = Arc::new(ManualClock::default());
    let catalog = Catalog::new(defaults.clone(), Arc::clone(&clock) as _).unwrap();
    let rules = rules.iter().map(rule).collect();
    let snapshot = Snapshot::compile(Revision(1), rules, &defaults, None).unwrap();
    catalog.replace(snapshot);
    let store = MemoryStore::builder().clock(clock).build();
    CheckRateLimit::new(Arc::new(catalog), BatchLimiter::new(store))
}

/// The rule that decided, and what is left under it.
async fn check(
    checks: &CheckRateLimit,
    attributes: &Json,
    cost: u64,
) -> Option<(String, bool, u64)> {
    let mut own = Attributes::default();
    for (name, value) in attributes.as_object().unwrap() {
        own.insert(&**name, value.as_str().unwrap()).unwrap();
    }
    let cost = Cost::new(cost).unwrap();
    let question = AttributesQuestion { attributes: own, defaulted: None, cost };
    let verdict = checks.check_attributes(&question).await.unwrap()?;
    let name = verdict.rule.rule().map_or("default".to_owned(), RateLimitRule::display_name);
    Some((name, verdict.decision.allowed, verdict.decision.remaining))
}

fn by(name: &str, allowed: bool, remaining: u64) -> (String, bool, u64) {
    (name.to_owned(), allowed, remaining)
}

#[tokio::test]
async fn every_rule_that_matches_must_admit() {
    let checks = checks(&[
        json!({"name": "tenant", "per": ["tenant"], "limit": 5}),
        json!({"name": "exports", "when": {"path": "/exports/*"}, "per": ["tenant", "user"], "limit": 2}),
    ]);
    let export = json!({"tenant": "acme", "user": "u1", "path": "/exports/7"});
    assert_eq!(check(&checks, &export, 2).await, Some(by("exports", true, 0)));
    // The denial takes nothing from the tenant.
    assert_eq!(check(&checks, &export, 1).await, Some(by("exports", false, 0)));
    let other = json!({"tenant": "acme", "user": "u1", "path": "/"});
    assert_eq!(check(&checks, &other, 1).await, Some(by("tenant", true, 2)));
    let colleague = json!({"tenant": "acme", "user": "u2", "path": "/exports/7"});
    assert_eq!(check(&checks, &colleague, 1).await, Some(by("tenant", true, 1)));
    // A check without the attribute that a rule counts by is not limited by it.
    assert_eq!(check(&checks, &json!({"user": "u1"}), 1).await, None);
}

#[tokio::test]
async fn a_rule_that_stops_exempts_from_lower_priorities() {
    let checks = checks(&[
        json!({"name": "all", "limit": 1}),
        json!({"scope": "user", "pattern": "*", "limit": 1}),
        json!({"name": "staff", "when": {"role": "staff"}, "limit": 9, "priority": 1, "stops": true}),
        json!({"name": "partners", "when": {"role": "partner"}, "limit": 9, "stops": true}),
        json!({"name": "audit", "when": {"role": "audit"}, "limit": 9, "priority": 2, "stops": true, "enabled": false}),
    ]);
    assert_eq!(check(&checks, &json!({"user": "u1"}), 1).await.unwrap().2, 0);
    assert!(!check(&checks, &json!({"user": "u2"}), 1).await.unwrap().1, "all is used up");
    let staff = json!({"user": "u1", "role": "staff"});
    assert_eq!(check(&checks, &staff, 1).await, Some(by("staff", true, 8)));
    // Rules of the same priority are not stopped.
    let partner = json!({"user": "u3", "role": "partner"});
    assert_eq!(check(&checks, &partner, 1).await, Some(by("all", false, 0)));
    // A disabled rule that stops is an exemption: nothing is counted.
    let audit = json!({"user": "u1", "role": "audit"});
    for _ in 0..3 {
        assert_eq!(check(&checks, &audit, 1).await, Some(by("audit", true, 9)));
    }
}

#[tokio::test]
async fn subjects_are_attributes() {
    let checks = checks(&[
        json!({"scope": "user", "pattern": "*", "limit": 3}),
        json!({"name": "both", "when": {"user": "u*"}, "per": ["user"], "limit": 2}),
    ]);
    // A check with attributes counts under the rules of its subjects, and the other way round.
    assert_eq!(check(&checks, &json!({"user": "u1"}), 1).await, Some(by("both", true, 1)));
    let subject = Key::new("u1").unwrap();
    let (scope, selection) = (Scope::User, RuleSelection::Matching);
    let question = Question { scope, subject, selection, cost: Cost::ONE };
    let verdict = checks.check(&question).await.unwrap();
    assert_eq!((verdict.stack.len(), verdict.decision.remaining), (2, 0));
    assert!(!checks.check(&question).await.unwrap().decision.allowed);
    // So do batches, whose costs are added.
    let other = Question { subject: Key::new("u2").unwrap(), ..question };
    let verdicts = checks.check_all(&[other.into(), other.into()]).await.unwrap();
    assert_eq!(verdicts[0].as_ref().unwrap().decision.remaining, 0);
    // A window asks the rules of the subject alone.
    let window = Question { selection: RuleSelection::Window(60), ..question };
    assert_eq!(checks.check(&window).await.unwrap().decision.remaining, 0);
    // Without a rule of its scope, a subject has the default limit, but attributes have none.
    let service = Question { scope: Scope::Service, ..question };
    assert_eq!(checks.check(&service).await.unwrap().decision.remaining, 99);
    assert_eq!(check(&checks, &json!({"service": "u1"}), 1).await, None);
}

#[tokio::test]
async fn more_rules_than_the_maximum_are_an_error() {
    let name = |i: usize| json!({"name": format!("r{i}"), "limit": 1000});
    let mut rules: Vec<Json> = (0..Selector::MAX_MATCHES).map(name).collect();
    assert!(check(&checks(&rules), &json!({}), 1).await.is_some());
    rules.push(name(99));
    let attributes = Attributes::default();
    let question = AttributesQuestion { attributes, defaulted: None, cost: Cost::ONE };
    let error = checks(&rules).check_attributes(&question).await.unwrap_err();
    assert!(matches!(error, CheckError::TooManyRules), "{error}");
}
