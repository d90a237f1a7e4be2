use std::{collections::BTreeMap, time::Duration};

use headgate::{FailMode, LeasePolicy, Limit};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{
    Defaults, Draft, OverrideSpec, OverrideSubject, RateLimitRule, Revision, RuleDelta, Snapshot,
};

fn defaults(lease: LeasePolicy) -> Defaults {
    Defaults {
        limit: Limit::token_bucket(100, Duration::from_secs(60)).unwrap(),
        window_seconds: 60,
        fail_mode: FailMode::Open,
        lease,
    }
}

fn rule(i: usize) -> RateLimitRule {
    let mut draft = Draft {
        name: format!("rule-{i}").into(),
        limit: 10.into(),
        window_seconds: 60.into(),
        ..Draft::default()
    };
    draft.selector.per = vec!["tenant".to_owned()].into();
    let (spec, now) = (draft.validate(None).unwrap(), Timestamp::from_micros(1));
    RateLimitRule { id: RuleId::random(), spec, created_at: now, updated_at: now }
}

fn overridden(rule: &RateLimitRule, tenant: &str, limit: u32) -> RuleOverride {
    let subject = OverrideSubject::parse(&json!({"tenant": tenant})).unwrap();
    let spec = OverrideSpec { rule: rule.id, subject, limit, until: None, reason: None };
    let now = Timestamp::from_micros(1);
    RuleOverride { id: OverrideId::random(), spec, created_at: now, updated_at: now }
}

fn compiled(rules: Vec<RateLimitRule>, overrides: Vec<RuleOverride>) -> Snapshot {
    let defaults = defaults(LeasePolicy::OFF);
    let snapshot = Snapshot::compile(Revision(1), rules, &defaults, None).unwrap();
    snapshot.with_overrides(overrides)
}

/// The limit of a tenant under a rule.
fn limit(snapshot: &Snapshot, rule: &RateLimitRule, tenant: &str) -> Option<u64> {
    let mut attributes = Attributes::default();
    attributes.insert("tenant", tenant).unwrap();
    let rule = snapshot.rule(rule.id)?;
    let now = || Timestamp::from_micros(1);
    Some(snapshot.with_limit_for(rule, &attributes, now).units())
}

#[test]
fn a_new_override_among_many_copies_a_few_shards_and_compiles_one() {
    let rules: Vec<RateLimitRule> = (0..20).map(rule).collect();
    let many: Vec<RuleOverride> =
        (0..10_000).map(|i| overridden(&rules[i % 20], &format!("t{i}"), 20)).collect();
    let before = compiled(rules.clone(), many.clone());
    let added = overridden(&rules[0], "acme", 5000);
    let delta = RuleDelta { overrides: vec![added.clone()], ..RuleDelta::default() };
    let after = before.after(delta, &defaults(LeasePolicy::OFF)).unwrap();
    assert!(after.overrides.copied(&before.overrides) <= 3);
    assert_eq!(
        (limit(&after, &rules[0], "acme"), limit(&after, &rules[0], "t0")),
        (Some(5000), Some(20))
    );
    assert_eq!(
        (limit(&after, &rules[1], "acme"), limit(&before, &rules[0], "acme")),
        (Some(10), Some(10))
    );
    let delta = RuleDelta { deleted_overrides: vec![added.id], ..RuleDelta::default() };
    let again = after.after(delta, &defaults(LeasePolicy::OFF)).unwrap();
    assert!(again.overrides.copied(&after.overrides) <= 3);
    assert_eq!((limit(&again, &rules[0], "acme"), again.overrides.len()), (Some(10), 10_000));
}

#[test]
fn overrides_follow_changes_of_their_rule() {
    let (mut one, other) = (rule(1), rule(2));
    let overrides = vec![overridden(&one, "acme", 5000), overridden(&other, "acme", 6000)];
    let before = compiled(vec![one.clone(), other.clone()], overrides);
    one.spec.burst = Some(20);
    one.spec.window_seconds = 3600;
    let delta = RuleDelta { changed: vec![one.clone()], ..RuleDelta::default() };
    let after = before.after(delta, &defaults(LeasePolicy::OFF)).unwrap();
    let mut attributes = Attributes::default();
    attributes.insert("tenant", "acme").unwrap();
    let now = || Timestamp::from_micros(1);
    let effective = after.with_limit_for(after.rule(one.id).unwrap(), &attributes, now);
    assert_eq!((effective.units(), effective.limit().capacity()), (5000, 10_000));
    assert_eq!(effective.window_seconds(), 3600);

    // New defaults: the lease of an override is a share of its own limit.
    let leased = after.with_defaults(&defaults("10%/200ms".parse().unwrap())).unwrap();
    let effective = leased.with_limit_for(leased.rule(one.id).unwrap(), &attributes, now);
    assert!(effective.extra().unwrap().units() > 100, "{:?}", effective.extra());

    let delta = RuleDelta { deleted: vec![one.id], ..RuleDelta::default() };
    let deleted = after.after(delta, &defaults(LeasePolicy::OFF)).unwrap();
    assert_eq!((deleted.overrides.len(), limit(&deleted, &other, "acme")), (1, Some(6000)));
}

#[test]
fn a_limit_beyond_the_algorithm_of_a_changed_rule_is_its_highest() {
    let mut log = rule(1);
    let before = compiled(vec![log.clone()], vec![overridden(&log, "acme", 200_000)]);
    assert_eq!(limit(&before, &log, "acme"), Some(200_000));
    log.spec.algorithm = headgate::Algorithm::SlidingWindow;
    let delta = RuleDelta { changed: vec![log.clone()], ..RuleDelta::default() };
    let after = before.after(delta, &defaults(LeasePolicy::OFF)).unwrap();
    assert_eq!(limit(&after, &log, "acme"), Some(Limit::MAX_LOG));
}

proptest! {
    #[test]
    fn applying_deltas_equals_compiling_all_overrides(
        steps in proptest::collection::vec((0..4_usize, 0..6_usize, proptest::option::of(1..99_u32)), 1..60)
    ) {
        let rules: Vec<RateLimitRule> = (0..4).map(rule).collect();
        let mut current = compiled(rules.clone(), Vec::new());
        let mut known: BTreeMap<(usize, usize), RuleOverride> = BTreeMap::new();
        for (which, tenant, new_limit) in steps {
            let mut delta = RuleDelta::default();
            let old = known.remove(&(which, tenant));
            match new_limit {
                None => delta.deleted_overrides.extend(old.map(|old| old.id)),
                Some(new_limit) => {
                    let mut new = overridden(&rules[which], &format!("t{tenant}"), new_limit);
                    new.id = old.map_or(new.id, |old| old.id);
                    delta.overrides.push(new.clone());
                    known.insert((which, tenant), new);
                }
            }
            current = current.after(delta, &defaults(LeasePolicy::OFF)).unwrap();
            let fresh = compiled(rules.clone(), known.values().cloned().collect());
            prop_assert_eq!(current.overrides.len(), fresh.overrides.len());
            for rule in &rules {
                for tenant in 0..6 {
                    let tenant = format!("t{tenant}");
                    prop_assert_eq!(limit(&current, rule, &tenant), limit(&fresh, rule, &tenant));
                }
                prop_assert_eq!(
                    current.override_shapes(rule.id).count(),
                    fresh.override_shapes(rule.id).count()
                );
            }
        }
    }
}
