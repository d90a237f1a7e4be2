use std::{num::NonZeroU32, sync::Arc};

use headgate::{
    Batch, BatchLimiter, Cost, FailMode, FailurePolicy, Key, LeasePolicy, Limit, ManualClock,
    Store, StoreError, StoreFuture,
};
use headgate_store_memory::MemoryStore;
use serde_json::json;

use super::*;
use crate::{
    Attributes, Catalog, Defaults, Draft, OverrideId, OverrideSpec, OverrideSubject, RateLimitRule,
    Revision, RuleId, RuleOverride, RuleSpec, Scope, SelectorDraft, Snapshot,
    usecase::{AnyQuestion, AttributesQuestion, Question, check::RuleSelection},
};

const LEASE: Duration = Duration::from_secs(30);

/// A store that is down.
struct Down;

impl Store for Down {
    fn apply<'a>(&'a self, _: Verb, _: &'a Batch<'_>) -> StoreFuture<'a> {
        StoreFuture::ready(Err(StoreError::BreakerOpen))
    }
}

/// The checks of a server with these rules, whose store is down.
fn server(rules: &[RateLimitRule], overrides: Vec<RuleOverride>) -> CheckRateLimit {
    let defaults = Defaults {
        limit: Limit::token_bucket(100, Duration::from_secs(60)).unwrap(),
        window_seconds: 60,
        fail_mode: FailMode::Capped,
        lease: LeasePolicy::OFF,
    };
    let clock = Arc::new(ManualClock::default());
    let catalog = Catalog::new(defaults.clone(), Arc::clone(&clock) as _).unwrap();
    let snapshot = Snapshot::compile(Revision(1), rules.to_vec(), &defaults, None).unwrap();
    catalog.replace(snapshot.with_overrides(overrides));
    let local = MemoryStore::builder().clock(Arc::clone(&clock)).build();
    let store = FailurePolicy::new(Down, local, NonZeroU32::MIN, clock);
    CheckRateLimit::new(Arc::new(catalog), BatchLimiter::new(store))
}

fn stored(draft: Draft) -> RateLimitRule {
    let (spec, now) = (draft.validate(None).unwrap(), Timestamp::from_micros(1));
    RateLimitRule { id: RuleId::random(), spec, created_at: now, updated_at: now }
}

fn rule(pattern: &str, limit: i64) -> RateLimitRule {
    stored(Draft {
        scope: "service".to_owned().into(),
        identifier_pattern: pattern.to_owned().into(),
        limit: limit.into(),
        window_seconds: 60.into(),
        algorithm: "concurrency".to_owned().into(),
        ..Draft::default()
    })
}

fn changed(rule: &RateLimitRule, change: impl FnOnce(&mut RuleSpec)) -> RateLimitRule {
    let mut rule = rule.clone();
    change(&mut rule.spec);
    rule
}

async fn acquire(checks: &CheckRateLimit, check: AnyQuestion<'_>) -> Option<PlaceLeaseId> {
    let request = ReservationRequest { checks: vec![check], ttl: LEASE, request_id: None };
    let acquired = checks.acquire(&request).await.unwrap();
    // As another instance reads it.
    acquired.lease.map(|lease| lease.id.as_str().parse().unwrap())
}

fn export() -> AnyQuestion<'static> {
    AnyQuestion::Subject(Question {
        scope: Scope::Service,
        subject: Key::new("export").unwrap(),
        selection: RuleSelection::Matching,
        cost: Cost::ONE,
    })
}

/// Renews the lease of another server, whose rules are `others`.
async fn renew(
    here: &CheckRateLimit,
    others: &[RateLimitRule],
) -> Result<Renewed, ReservationError> {
    let id = acquire(&server(others, Vec::new()), export()).await.unwrap();
    here.renew_lease(&id, None).await
}

#[tokio::test]
async fn without_the_store_only_leases_of_rules_in_force_are_renewed() {
    let (own, wide) = (rule("export", 1), rule("other*", 1000));
    let here = server(&[own.clone(), wide.clone()], Vec::new());
    let made_up = [
        // Of a rule that does not exist here, or was deleted.
        rule("export", 1000),
        // Of a rule that counts other subjects under keys of the same form.
        RateLimitRule { id: wide.id, ..rule("*", 1000) },
        // Of a rule over another window.
        changed(&own, |spec| spec.window_seconds = 61),
    ];
    for other in made_up {
        let renewed = renew(&here, std::slice::from_ref(&other)).await;
        assert!(
            matches!(renewed, Err(ReservationError::DeniedBy(FailMode::Closed))),
            "{other:?}: {renewed:?}"
        );
    }
    // The rule's limit counts, not that of the id.
    let raised = RateLimitRule { id: own.id, ..rule("export", 1000) };
    assert!(renew(&here, std::slice::from_ref(&raised)).await.is_ok(), "the first place");
    let second = renew(&here, &[raised]).await;
    assert!(matches!(second, Err(ReservationError::DeniedBy(_))), "{second:?}");

    let disabled = changed(&own, |spec| spec.enabled = false);
    let renewed = renew(&server(&[disabled], Vec::new()), &[own]).await;
    assert!(matches!(renewed, Err(ReservationError::DeniedBy(_))), "{renewed:?}");
}

#[tokio::test]
async fn without_the_store_a_limit_by_plan_must_be_one_of_the_rule() {
    let by_plan = |free: u64| {
        let selector = SelectorDraft {
            per: vec!["tenant".to_owned()].into(),
            limits: json!({"by": "plan", "free": free, "pro": 5}).into(),
            ..SelectorDraft::default()
        };
        stored(Draft {
            name: "exports".to_owned().into(),
            selector,
            window_seconds: 60.into(),
            algorithm: "concurrency".to_owned().into(),
            ..Draft::default()
        })
    };
    let rule = by_plan(2);
    let attributes = |plan: &'static str| {
        let mut attributes = Attributes::default();
        attributes.insert("tenant", "acme").unwrap();
        attributes.insert("plan", plan).unwrap();
        let question = AttributesQuestion { attributes, defaulted: None, cost: Cost::ONE };
        AnyQuestion::Attributes(Box::new(question))
    };
    let id = async |rule: &RateLimitRule, plan| {
        acquire(&server(std::slice::from_ref(rule), Vec::new()), attributes(plan)).await.unwrap()
    };
    let made_up = id(&RateLimitRule { id: rule.id, ..by_plan(1000) }, "free").await;
    let (pro, another) = (id(&rule, "pro").await, id(&rule, "pro").await);
    let here = server(std::slice::from_ref(&rule), Vec::new());
    assert!(here.renew_lease(&pro, None).await.is_ok());
    assert!(here.renew_lease(&made_up, None).await.is_err());

    let tenant = |fields| OverrideSubject::parse(&fields).unwrap();
    let lowered = |subject: OverrideSubject| {
        let (limit, now) = (1, Timestamp::from_micros(1));
        let spec = OverrideSpec { rule: rule.id, subject, limit, until: None, reason: None };
        let id = OverrideId::random();
        vec![RuleOverride { id, spec, created_at: now, updated_at: now }]
    };
    // An override of the subject holds, whatever the plan is.
    let here = server(std::slice::from_ref(&rule), lowered(tenant(json!({"tenant": "acme"}))));
    assert!(here.renew_lease(&pro, None).await.is_ok());
    assert!(here.renew_lease(&another, None).await.is_err(), "the limit is one");
    // It is not known whether this one applies.
    let here = server(std::slice::from_ref(&rule), lowered(tenant(json!({"region": "eu"}))));
    assert!(here.renew_lease(&pro, None).await.is_err());
}
