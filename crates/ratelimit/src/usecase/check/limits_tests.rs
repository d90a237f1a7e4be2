//! Limits by plan and overrides.

use std::{sync::Arc, time::Duration};

use headgate::{BatchLimiter, Cost, FailMode, Key, LeasePolicy, Limit, ManualClock, Timestamp};
use headgate_store_memory::MemoryStore;
use serde_json::{Value as Json, json};

use super::{
    AnyQuestion, AttributesQuestion, CheckRateLimit, Question, ReservationRequest, RuleSelection,
    reservations::{Charge, Costs},
};
use crate::{
    Attributes, Catalog, Defaults, Draft, OverrideId, OverrideSpec, OverrideSubject, RateLimitRule,
    Revision, RuleId, RuleOverride, Scope, Snapshot,
};

struct Server {
    checks: CheckRateLimit,
    clock: Arc<ManualClock>,
    rules: Vec<RateLimitRule>,
    defaults: Defaults,
}

fn rule(limit: &Json, burst: Option<i64>, per: &[&str]) -> RateLimitRule {
    let mut draft = Draft {
        name: "api".to_owned().into(),
        window_seconds: 60.into(),
        algorithm: if burst.is_some() { "token_bucket" } else { "fixed_window" }.to_owned().into(),
        burst: burst.map_or(crate::Input::Missing, Into::into),
        ..Draft::default()
    };
    match limit.as_i64() {
        Some(limit) => draft.limit = limit.into(),
        None => draft.selector.limits = limit.clone().into(),
    }
    draft.selector.per = per.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>().into();
    stored(draft)
}

fn of_user(pattern: &str) -> RateLimitRule {
    stored(Draft {
        scope: "user".to_owned().into(),
        identifier_pattern: pattern.to_owned().into(),
        limit: 10.into(),
        window_seconds: 60.into(),
        ..Draft::default()
    })
}

fn stored(draft: Draft) -> RateLimitRule {
    let (spec, now) = (draft.validate(None).unwrap(), Timestamp::from_micros(1));
    RateLimitRule { id: RuleId::random(), spec, created_at: now, updated_at: now }
}

fn overridden(
    rule: &RateLimitRule,
    subject: &Json,
    limit: u32,
    until: Option<u64>,
) -> RuleOverride {
    let now = Timestamp::from_micros(1);
    let spec = OverrideSpec {
        rule: rule.id,
        subject: OverrideSubject::parse(subject).unwrap(),
        limit,
        until: until.map(|seconds| Timestamp::from_micros(seconds * 1_000_000)),
        reason: None,
    };
    RuleOverride { id: OverrideId::random(), spec, created_at: now, updated_at: now }
}

fn attributes(json: &Json) -> Attributes<'static> {
    let mut attributes = Attributes::default();
    for (name, value) in json.as_object().unwrap() {
        let value = match value {
            Json::Array(items) => crate::AttributeValue::List(
                items.iter().map(|item| item.as_str().unwrap().to_owned().into()).collect(),
            ),
            text => text.as_str().unwrap().to_owned().into(),
        };
        attributes.insert(name.clone(), value).unwrap();
    }
    attributes
}

impl Server {
    fn new(rules: Vec<RateLimitRule>, overrides: Vec<RuleOverride>) -> Self {
        let defaults = Defaults {
            limit: Limit::token_bucket(7, Duration::from_secs(60)).unwrap(),
            window_seconds: 60,
            fail_mode: FailMode::Open,
            lease: LeasePolicy::OFF,
        };
        let clock = Arc::new(ManualClock::default());
        let catalog = Catalog::new(defaults.clone(), Arc::clone(&clock) as _).unwrap();
        let store = MemoryStore::builder().clock(Arc::clone(&clock)).build();
        let checks = CheckRateLimit::new(Arc::new(catalog), BatchLimiter::new(store));
        let server = Self { checks, clock, rules, defaults };
        server.set(overrides);
        server
    }

    fn set(&self, overrides: Vec<RuleOverride>) {
        let rules = self.rules.clone();
        let snapshot = Snapshot::compile(Revision(1), rules, &self.defaults, None).unwrap();
        self.checks.catalog.replace(snapshot.with_overrides(overrides));
    }

    /// Limit and remaining units after a check of one unit.
    async fn check(&self, json: Json) -> (u64, u64) {
        let question =
            AttributesQuestion { attributes: attributes(&json), defaulted: None, cost: Cost::ONE };
        let verdict = self.checks.check_attributes(&question).await.unwrap().unwrap();
        (verdict.decision.limit, verdict.decision.remaining)
    }

    async fn check_user(&self, user: &str) -> (u64, u64) {
        let question = Question {
            scope: Scope::User,
            subject: Key::new(user).unwrap(),
            selection: RuleSelection::Matching,
            cost: Cost::ONE,
        };
        let verdict = self.checks.check(&question).await.unwrap();
        (verdict.decision.limit, verdict.decision.remaining)
    }
}

#[tokio::test]
async fn the_plan_of_a_check_decides_its_limit() {
    let limit = json!({"by": "plan", "free": 10, "pro": 100, "default": 5});
    let server = Server::new(vec![rule(&limit, None, &["tenant"])], Vec::new());
    assert_eq!(server.check(json!({"tenant": "a", "plan": "free"})).await, (10, 9));
    assert_eq!(server.check(json!({"tenant": "b", "plan": "pro"})).await, (100, 99));
    assert_eq!(server.check(json!({"tenant": "c", "plan": "gold"})).await, (5, 4));
    assert_eq!(server.check(json!({"tenant": "d"})).await, (5, 4));
    // Of several plans, the best.
    let several = json!({"tenant": "e", "plan": ["free", "gold", "pro"]});
    assert_eq!(server.check(several).await, (100, 99));
}

#[tokio::test]
async fn a_missing_plan_without_a_default_has_the_lowest_limit() {
    let limit = json!({"by": "plan", "pro": 100, "free": 10});
    let server = Server::new(vec![rule(&limit, None, &["tenant"])], Vec::new());
    assert_eq!(server.check(json!({"tenant": "a"})).await, (10, 9));
    assert_eq!(server.check(json!({"tenant": "a", "plan": "gold"})).await, (10, 8));
}

#[tokio::test]
async fn a_subject_that_changes_its_plan_keeps_its_count() {
    let limit = json!({"by": "plan", "free": 10, "pro": 100});
    let server = Server::new(vec![rule(&limit, None, &["tenant"])], Vec::new());
    for _ in 0..4 {
        server.check(json!({"tenant": "a", "plan": "free"})).await;
    }
    assert_eq!(server.check(json!({"tenant": "a", "plan": "pro"})).await, (100, 95));
    assert_eq!(server.check(json!({"tenant": "a", "plan": "free"})).await, (10, 4));
    // The same with a bucket.
    let server = Server::new(vec![rule(&limit, Some(10), &["tenant"])], Vec::new());
    for _ in 0..4 {
        server.check(json!({"tenant": "a", "plan": "free"})).await;
    }
    assert_eq!(server.check(json!({"tenant": "a", "plan": "pro"})).await, (100, 95));
}

#[tokio::test]
async fn bursts_are_in_proportion_to_the_limit() {
    let limit = json!({"by": "plan", "free": 10, "pro": 100, "tiny": 1, "default": 50});
    let tenant = rule(&limit, Some(25), &["tenant"]);
    let boost = overridden(&tenant, &json!({"tenant": "boosted"}), 1000, None);
    let server = Server::new(vec![tenant], vec![boost]);
    assert_eq!(server.check(json!({"tenant": "a", "plan": "pro"})).await, (50, 49));
    assert_eq!(server.check(json!({"tenant": "b", "plan": "free"})).await, (5, 4));
    assert_eq!(server.check(json!({"tenant": "c", "plan": "tiny"})).await, (1, 0));
    assert_eq!(server.check(json!({"tenant": "d"})).await, (25, 24));
    assert_eq!(server.check(json!({"tenant": "boosted", "plan": "pro"})).await, (500, 499));
}

#[tokio::test]
async fn an_override_holds_until_its_end_without_a_reload() {
    let tenant = rule(&json!(10), None, &["tenant"]);
    let boost = overridden(&tenant, &json!({"tenant": "acme"}), 5000, Some(30));
    let server = Server::new(vec![tenant], vec![boost]);
    assert_eq!(server.check(json!({"tenant": "acme"})).await, (5000, 4999));
    assert_eq!(server.check(json!({"tenant": "other"})).await, (10, 9));
    server.clock.advance(Duration::from_secs(29));
    assert_eq!(server.check(json!({"tenant": "acme"})).await, (5000, 4998));
    server.clock.advance(Duration::from_secs(1));
    // What was used counts against the limit of the rule.
    assert_eq!(server.check(json!({"tenant": "acme"})).await, (10, 7));
}

#[tokio::test]
async fn the_override_with_the_most_attributes_decides() {
    let both = rule(&json!(10), None, &["tenant", "user"]);
    let overrides = vec![
        overridden(&both, &json!({"tenant": "acme"}), 20, None),
        overridden(&both, &json!({"tenant": "acme", "user": "u1"}), 30, Some(10)),
        overridden(&both, &json!({"region": "eu"}), 40, None),
    ];
    let server = Server::new(vec![both], overrides);
    assert_eq!(server.check(json!({"tenant": "acme", "user": "u1"})).await, (30, 29));
    assert_eq!(server.check(json!({"tenant": "acme", "user": "u2"})).await, (20, 19));
    assert_eq!(server.check(json!({"tenant": "x", "user": "u1"})).await, (10, 9));
    assert_eq!(server.check(json!({"tenant": "x", "user": "u3", "region": "eu"})).await, (40, 39));
    server.clock.advance(Duration::from_secs(10));
    assert_eq!(server.check(json!({"tenant": "acme", "user": "u1"})).await, (20, 18));
}

#[tokio::test]
async fn rules_by_scope_have_overrides() {
    let users = of_user("*");
    let boost = overridden(&users, &json!({"user": "u1"}), 50, None);
    let server = Server::new(vec![users.clone()], vec![boost]);
    assert_eq!(server.check_user("u1").await, (50, 49));
    assert_eq!(server.check_user("u2").await, (10, 9));
    assert_eq!(server.check(json!({"user": "u1"})).await, (50, 48));
    server.set(Vec::new());
    assert_eq!(server.check_user("u1").await, (10, 7));
}

#[tokio::test]
async fn batches_have_checks_of_both_kinds() {
    let limit = json!({"by": "plan", "free": 10, "pro": 100});
    let (tenants, users) = (rule(&limit, None, &["tenant"]), of_user("*"));
    let server = Server::new(vec![tenants, users], Vec::new());
    let by = |json: Json| AttributesQuestion {
        attributes: attributes(&json),
        defaulted: None,
        cost: Cost::new(4).unwrap(),
    };
    let user = Question {
        scope: Scope::User,
        subject: Key::new("u1").unwrap(),
        selection: RuleSelection::Matching,
        cost: Cost::ONE,
    };
    let questions: Vec<AnyQuestion<'_>> = vec![
        by(json!({"tenant": "a", "plan": "pro"})).into(),
        user.into(),
        by(json!({"nothing": "matches"})).into(),
        by(json!({"tenant": "a", "plan": "free"})).into(),
    ];
    let remaining = |verdicts: Vec<Option<super::Verdict>>| -> Vec<Option<(bool, u64)>> {
        let shown = |v: super::Verdict| (v.decision.allowed, v.decision.remaining);
        verdicts.into_iter().map(|verdict| verdict.map(shown)).collect()
    };
    // The lowest limit decides for a subject that has two.
    let verdicts = remaining(server.checks.check_all(&questions).await.unwrap());
    assert_eq!(verdicts, [Some((true, 2)), Some((true, 9)), None, Some((true, 2))]);
    let verdicts = remaining(server.checks.check_all(&questions).await.unwrap());
    assert_eq!(verdicts, [Some((false, 2)), Some((true, 9)), None, Some((false, 2))]);
}

#[tokio::test]
async fn a_reservation_under_an_override_keeps_its_limit_when_the_rule_is_edited() {
    let mut edited = of_user("*");
    let mut server = Server::new(vec![edited.clone()], Vec::new());
    let lowered = overridden(&edited, &json!({"user": "u1"}), 2, None);
    server.set(vec![lowered.clone()]);
    let question = Question {
        scope: Scope::User,
        subject: Key::new("u1").unwrap(),
        selection: RuleSelection::Matching,
        cost: Cost::new(2).unwrap(),
    };
    let request = ReservationRequest {
        checks: vec![AnyQuestion::Subject(question)],
        ttl: Duration::from_secs(30),
        request_id: None,
    };
    let reserved = server.checks.reserve(&request).await.unwrap();
    let id = reserved.reservation.unwrap().id;
    edited.updated_at = Timestamp::from_micros(2);
    server.rules = vec![edited];
    server.set(vec![lowered]);
    // The rule itself would have eight more.
    let charge = Charge::Cost(Costs::Each(2));
    let used = server.checks.use_reservation(&id, &charge).await.unwrap();
    assert_eq!(used.held, Some(0));
}
