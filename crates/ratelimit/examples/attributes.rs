//! Measures checks with attributes, with more and more rules of which few can match, on the memory
//! store. Run by `bench/run --only rules`.

#![allow(clippy::print_stdout, reason = "the figures are the product")]
#![allow(clippy::disallowed_methods, reason = "the time that passes is what is measured")]
#![allow(clippy::unwrap_used, reason = "a measurement that cannot go on has failed")]

use std::{sync::Arc, time::Duration, time::Instant};

use async_trait::async_trait;
use headgate::{BatchLimiter, Cost, FailMode, LeasePolicy, Limit, SystemClock, Timestamp};
use headgate_ratelimit::{
    Attributes, Author, Catalog, Defaults, Draft, Listed, OverrideId, OverrideSpec,
    OverrideSubject, Page, RateLimitRule, RateLimitRuleRepository, RepositoryError, Revision,
    RuleChange, RuleDelta, RuleFilter, RuleId, RuleOverride, SelectorDraft,
    usecase::{AttributesQuestion, CheckRateLimit},
};
use headgate_store_memory::MemoryStore;
use serde_json::{Value as Json, json};
use tokio::sync::Notify;

/// Checks per round.
const CHECKS: usize = 50_000;

/// Rounds, of which the fastest counts.
const ROUNDS: usize = 15;

/// Different checks, so that not one set of buckets stays in the cache.
const KINDS: usize = 64;

const SIZES: [usize; 4] = [10, 1_000, 10_000, 100_000];

/// Overrides of one of ten rules.
const OVERRIDES: [usize; 4] = [0, 100, 10_000, 100_000];

/// Rules and overrides that are loaded once.
struct Fixed(Vec<RateLimitRule>, Vec<RuleOverride>);

/// A size, its checks and the time of a change.
type Case = (usize, CheckRateLimit, Duration);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    println!("| rules | ns per check | relative to 10 rules | change of one rule |");
    println!("| --- | --- | --- | --- |");
    let mut cases = Vec::new();
    for size in SIZES {
        cases.push(load(size, size, 0).await);
    }
    measure(&cases).await;
    println!("\n| overrides | ns per check | relative to none | a new override |");
    println!("| --- | --- | --- | --- |");
    let mut cases = Vec::new();
    for overrides in OVERRIDES {
        cases.push(load(overrides, 10, overrides).await);
    }
    measure(&cases).await;
}

async fn measure(cases: &[Case]) {
    let mut first = None;
    let mut fastest = vec![Duration::MAX; cases.len()];
    // Rounds alternate, so that other load on the machine affects all sizes alike.
    for _ in 0..ROUNDS {
        for (fastest, (_, checks, _)) in fastest.iter_mut().zip(cases) {
            *fastest = (*fastest).min(round(checks).await);
        }
    }
    for (took, (size, _, change)) in fastest.into_iter().zip(cases) {
        let nanos = took.as_nanos() as f64 / CHECKS as f64;
        let base = *first.get_or_insert(nanos);
        println!("| {size} | {nanos:.0} | {:.2} | {} us |", nanos / base, change.as_micros());
    }
}

async fn round(checks: &CheckRateLimit) -> Duration {
    let questions: Vec<_> = (0..KINDS).map(question).collect();
    let start = Instant::now();
    for i in 0..CHECKS {
        let verdict = checks.check_attributes(&questions[i % KINDS]).await.unwrap();
        assert_eq!(verdict.map_or(0, |verdict| verdict.stack.len().max(1)), 2);
    }
    start.elapsed()
}

/// A check that two rules match, whatever the number of rules.
fn question(i: usize) -> AttributesQuestion<'static> {
    let mut attributes = Attributes::default();
    for (name, value) in [
        ("tenant", format!("t{}", i % 4)),
        ("user", format!("u{i}")),
        ("plan", "pro".to_owned()),
        ("method", "POST".to_owned()),
        ("path", "/v1/exports/7".to_owned()),
        ("country", "JP".to_owned()),
        ("address", "203.0.113.7".to_owned()),
    ] {
        attributes.insert(name, value).unwrap();
    }
    AttributesQuestion { attributes, defaulted: None, cost: Cost::ONE }
}

/// Rules of tenants: an equality, a prefix, a network or a list beside conditions that all share.
fn rule(i: usize) -> RateLimitRule {
    let when = match i {
        0..4 => json!({"method": "POST", "tenant": format!("t{i}")}),
        4 => json!({"method": "POST", "path": "/v1/exports/*"}),
        _ => match i % 4 {
            0 => json!({"method": "POST", "tenant": format!("t{i}")}),
            1 => json!({"method": ["POST", "PUT"], "path": format!("/v1/tenants/{i}/*")}),
            2 => json!({"method": "POST", "address": {"in": [network(i)]}}),
            _ => json!({"plan": {"exists": true}, "tenant": [format!("t{i}"), format!("x{i}")]}),
        },
    };
    stored(i, when)
}

fn network(i: usize) -> String {
    format!("10.{}.{}.0/24", i / 256 % 256, i % 256)
}

fn stored(i: usize, when: Json) -> RateLimitRule {
    let draft = Draft {
        name: format!("rule-{i}").into(),
        limit: 4_000_000_000.into(),
        window_seconds: 60.into(),
        selector: SelectorDraft {
            when: when.into(),
            per: vec!["tenant".to_owned(), "user".to_owned()].into(),
            ..SelectorDraft::default()
        },
        ..Draft::default()
    };
    let (spec, now) = (draft.validate(None).unwrap(), Timestamp::from_micros(1));
    RateLimitRule { id: RuleId::random(), spec, created_at: now, updated_at: now }
}

/// An override of a rule that all checks match.
fn overridden(rule: &RateLimitRule, tenant: usize) -> RuleOverride {
    let subject = OverrideSubject::parse(&json!({"tenant": format!("t{tenant}")})).unwrap();
    let limit = 4_100_000_000;
    let spec = OverrideSpec { rule: rule.id, subject, limit, until: None, reason: None };
    let now = Timestamp::from_micros(1);
    RuleOverride { id: OverrideId::random(), spec, created_at: now, updated_at: now }
}

/// A catalog with this many rules and overrides, and the time that a change of one of them takes.
async fn load(label: usize, size: usize, overrides: usize) -> Case {
    let defaults = Defaults {
        limit: Limit::token_bucket(100, Duration::from_secs(60)).unwrap(),
        window_seconds: 60,
        fail_mode: FailMode::Open,
        lease: LeasePolicy::OFF,
    };
    let catalog = Catalog::new(defaults.clone(), Arc::new(SystemClock::new())).unwrap();
    let rules: Vec<_> = (0..size).map(rule).collect();
    let last = rules[size - 1].clone();
    let mut delta = RuleDelta { revision: Revision(2), ..RuleDelta::default() };
    if label == size {
        delta.changed.push(RateLimitRule { spec: rule(size + 7).spec, ..last });
    } else {
        delta.overrides.push(overridden(&rules[4], overrides));
    }
    let overrides = (0..overrides).map(|i| overridden(&rules[4], i)).collect();
    catalog.refresh(&Fixed(rules, overrides)).await.unwrap();
    let snapshot = catalog.load();
    let fastest = (0..20).map(|_| {
        let (delta, start) = (delta.clone(), Instant::now());
        drop(snapshot.after(delta, &defaults).unwrap());
        start.elapsed()
    });
    let fastest = fastest.min().unwrap();
    let limiter = BatchLimiter::new(MemoryStore::default());
    (label, CheckRateLimit::new(Arc::new(catalog), limiter), fastest)
}

#[async_trait]
impl RateLimitRuleRepository for Fixed {
    fn max_rules(&self) -> u64 {
        u64::MAX
    }

    async fn load(&self) -> Result<(Revision, Vec<RateLimitRule>), RepositoryError> {
        Ok((Revision(1), self.0.clone()))
    }

    async fn load_overrides(&self) -> Result<Vec<RuleOverride>, RepositoryError> {
        Ok(self.1.clone())
    }

    async fn changes(&self, _: Revision) -> Result<Option<RuleDelta>, RepositoryError> {
        Ok(None)
    }

    async fn list(
        &self,
        _: &RuleFilter,
        _: Page,
    ) -> Result<(Revision, Listed<RateLimitRule>), RepositoryError> {
        Err(read_only())
    }

    async fn get(&self, id: RuleId) -> Result<Option<RateLimitRule>, RepositoryError> {
        Ok(self.0.iter().find(|rule| rule.id == id).cloned())
    }

    async fn write(
        &self,
        _: &[RuleChange],
        _: &Author,
    ) -> Result<Vec<RateLimitRule>, RepositoryError> {
        Err(read_only())
    }

    async fn write_if_unchanged(
        &self,
        _: &[RuleChange],
        _: Revision,
        _: &Author,
    ) -> Result<Vec<RateLimitRule>, RepositoryError> {
        Err(read_only())
    }

    async fn listen(&self, _: &Notify) -> RepositoryError {
        std::future::pending().await
    }
}

fn read_only() -> RepositoryError {
    RepositoryError::Corrupt("these rules do not change".to_owned())
}
