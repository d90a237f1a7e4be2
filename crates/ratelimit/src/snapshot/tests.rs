use std::time::Duration;

use headgate::Timestamp;
use proptest::prelude::*;

use super::{table::Table, *};
use crate::Draft;

fn defaults() -> Defaults {
    Defaults {
        limit: Limit::token_bucket(100, Duration::from_secs(60)).unwrap(),
        window_seconds: 60,
        fail_mode: FailMode::Open,
        lease: LeasePolicy::OFF,
    }
}

fn rule(scope: &str, pattern: &str, window: i64) -> RateLimitRule {
    let draft = Draft {
        scope: scope.to_owned().into(),
        identifier_pattern: pattern.to_owned().into(),
        limit: 10.into(),
        window_seconds: window.into(),
        ..Draft::default()
    };
    let now = Timestamp::from_micros(1);
    let spec = draft.validate(None).unwrap();
    RateLimitRule { id: RuleId::random(), spec, created_at: now, updated_at: now }
}

fn snapshot(rules: Vec<RateLimitRule>, before: Option<&Snapshot>) -> Snapshot {
    Snapshot::compile(Revision(1), rules, &defaults(), before).unwrap()
}

fn found(snapshot: &Snapshot, identifier: &str) -> (Level, Vec<String>) {
    let matched = snapshot.matching(Scope::User, identifier);
    let names = matched.rules.iter().map(|compiled| match compiled.rule() {
        Some(rule) => format!("{}/{}", rule.spec.identifier_pattern, rule.spec.window_seconds),
        None => "default".to_owned(),
    });
    (matched.level, names.collect())
}

#[test]
fn the_closest_pattern_decides() {
    let patterns = ["*", "ip:*", "ip:10.*", "ip:10.0.0.1"];
    let rules = patterns.map(|pattern| rule("user", pattern, 60)).to_vec();
    let snapshot = snapshot(rules, None);
    let cases = [
        ("ip:10.0.0.1", Level::Exact, "ip:10.0.0.1/60"),
        ("ip:10.0.0.2", Level::Prefix, "ip:10.*/60"),
        ("ip:11.0.0.1", Level::Prefix, "ip:*/60"),
        ("u1", Level::Any, "*/60"),
    ];
    for (identifier, level, name) in cases {
        assert_eq!(found(&snapshot, identifier), (level, vec![name.to_owned()]), "{identifier}");
    }
    assert_eq!(snapshot.matching(Scope::Service, "u1").level, Level::Default);
}

#[test]
fn windows_of_one_pattern_apply_together() {
    let rules = vec![rule("user", "u1", 3600), rule("user", "u1", 60), rule("user", "*", 1)];
    let snapshot = snapshot(rules, None);
    let both = vec!["u1/60".to_owned(), "u1/3600".to_owned()];
    assert_eq!(found(&snapshot, "u1"), (Level::Exact, both));
    let levels: Vec<Level> = snapshot.levels(Scope::User, "u1").map(|level| level.level).collect();
    assert_eq!(levels, [Level::Exact, Level::Any, Level::Default]);
}

#[test]
fn a_prefix_length_within_a_character_matches_nothing() {
    let snapshot = snapshot(vec![rule("user", "abc*", 60)], None);
    assert_eq!(found(&snapshot, "あい").0, Level::Default);
    assert_eq!(found(&snapshot, "ab").0, Level::Default);
}

#[test]
fn a_changed_rule_keeps_its_tally() {
    let first = rule("user", "*", 60);
    let before = snapshot(vec![first.clone()], None);
    before.rule(first.id).unwrap().tally().count(true);
    let mut changed = first.clone();
    changed.spec.limit = 20;
    let after = snapshot(vec![changed], Some(&before));
    assert_eq!(after.rule(first.id).unwrap().tally().allowed(), 1);
}

#[test]
fn rules_without_a_fail_mode_follow_the_defaults() {
    let (plain, mut explicit) = (rule("user", "*", 60), rule("user", "u1", 60));
    explicit.spec.fail_mode = Some(FailMode::Local);
    let before = snapshot(vec![plain.clone(), explicit.clone()], None);
    before.rule(plain.id).unwrap().tally().count(true);
    before.default[0].tally().count(false);
    let defaults = Defaults {
        limit: Limit::token_bucket(7, Duration::from_secs(30)).unwrap(),
        window_seconds: 30,
        fail_mode: FailMode::Closed,
        lease: LeasePolicy::OFF,
    };
    let after = before.with_defaults(&defaults).unwrap();
    assert_eq!(after.len(), 2);
    assert_eq!(after.rule(plain.id).unwrap().fail_mode(), FailMode::Closed);
    assert_eq!(after.rule(explicit.id).unwrap().fail_mode(), FailMode::Local);
    assert_eq!(after.default[0].limit().capacity(), 7);
    assert_eq!(after.rule(plain.id).unwrap().tally().allowed(), 1, "tallies stay");
    assert_eq!(after.default[0].tally().denied(), 1);
    assert_eq!(found(&after, "u1").0, Level::Exact);
    assert_eq!(after.counted().count(), before.counted().count());
}

#[test]
fn rules_without_a_lease_follow_the_defaults() {
    let policy = |text: &str| text.parse::<LeasePolicy>().unwrap();
    let (plain, mut own) = (rule("user", "*", 1), rule("user", "u1", 60));
    let (mut off, short) = (rule("user", "u2", 60), rule("user", "u3", 1));
    own.spec.lease = Some(policy("20%/100ms"));
    off.spec.lease = Some(LeasePolicy::OFF);
    let rules = vec![plain.clone(), own.clone(), off.clone(), short];
    let before = snapshot(rules, None);
    assert_eq!(before.rule(plain.id).unwrap().extra(), None);
    let lease = |snapshot: &Snapshot, id| snapshot.rule(id).unwrap().lease();
    let with = |lease| Defaults { lease, ..defaults() };
    let after = before.with_defaults(&with(policy("10%/500ms"))).unwrap();
    assert_eq!(lease(&after, plain.id), policy("10%/100ms"), "a tenth of a second");
    assert_eq!(lease(&after, own.id), policy("20%/100ms"));
    assert_eq!(lease(&after, off.id), LeasePolicy::OFF);
    assert_eq!(after.default[0].lease(), policy("10%/500ms"));
    let again = after.with_defaults(&with(policy("5%/300ms"))).unwrap();
    assert_eq!(lease(&again, plain.id), policy("5%/100ms"));
}

#[test]
fn key_suffixes_cover_all_windows_and_algorithms() {
    let snapshot = snapshot(vec![rule("user", "u1", 10), rule("user", "*", 3600)], None);
    let suffixes = snapshot.key_suffixes(Scope::User, "u1");
    let names: Vec<&str> = suffixes.iter().map(|(.., suffix)| suffix.as_str()).collect();
    // 10 and 3600 from the rules, 60 from the default; six algorithms each.
    assert_eq!(names.len(), 18);
    assert!(names.contains(&":60") && names.contains(&":10:sliding_window"), "{names:?}");
}

#[test]
fn only_the_shortest_windows_decide_beyond_the_maximum() {
    let rules: Vec<RateLimitRule> =
        (1..=10).rev().map(|window| rule("user", "u1", window)).collect();
    let longest: Vec<RuleId> = rules[..2].iter().rev().map(|rule| rule.id).collect();
    let snapshot = snapshot(rules, None);
    assert_eq!(applied(&snapshot, None), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(snapshot.ignored(), longest);
    assert_eq!(applied(&snapshot, Some(10)), [10], "its window can be selected");
    let suffixes = snapshot.key_suffixes(Scope::User, "u1");
    assert!(suffixes.iter().any(|(window, ..)| *window == 10), "a reset includes it");
}

#[test]
fn disabled_rules_do_not_count_towards_the_maximum() {
    let mut rules: Vec<RateLimitRule> = (1..=10).map(|window| rule("user", "u1", window)).collect();
    for rule in &mut rules[..9] {
        rule.spec.enabled = false;
    }
    let snapshot = snapshot(rules, None);
    assert_eq!(applied(&snapshot, None), [10]);
    assert!(snapshot.ignored().is_empty());
}

fn applied(snapshot: &Snapshot, window: Option<u64>) -> Vec<u32> {
    let matched = snapshot.matching(Scope::User, "u1");
    matched.applied(window).map(|rule| rule.window_seconds()).collect()
}

/// Returns the contents in a canonical order.
fn contents(snapshot: &Snapshot) -> impl PartialEq + std::fmt::Debug {
    let mut ids: Vec<(RuleId, u32)> = snapshot
        .by_id
        .iter()
        .filter_map(|rule| Some((rule.id()?, rule.rule()?.spec.limit)))
        .collect();
    ids.sort_unstable();
    let tables = snapshot.scopes.each_ref().map(Table::contents);
    (snapshot.revision, snapshot.len(), ids, tables, snapshot.ignored.clone())
}

/// Number of shards that two snapshots do not share.
fn copied(one: &Snapshot, other: &Snapshot) -> usize {
    let tables = one.scopes.iter().zip(&other.scopes).map(|(one, other)| one.copied(other));
    tables.sum::<usize>() + one.by_id.copied(&other.by_id)
}

#[test]
fn a_change_of_one_rule_copies_two_shards() {
    let rules: Vec<RateLimitRule> = (0..20_000)
        .map(|i| rule("user", &format!("u{i}{}", if i % 2 == 0 { "*" } else { "" }), 60))
        .collect();
    let first = rules[1].clone();
    let before = snapshot(rules, None);
    let mut changed = first.clone();
    changed.spec.limit = 20;
    let created = rule("user", "new", 60);
    let cases = [
        // Each copies one shard of the rules by id, and one of their patterns.
        (RuleDelta { changed: vec![created], ..RuleDelta::default() }, 2),
        (RuleDelta { changed: vec![changed], ..RuleDelta::default() }, 2),
        (RuleDelta { deleted: vec![first.id], ..RuleDelta::default() }, 2),
        (RuleDelta { deleted: vec![RuleId::random()], ..RuleDelta::default() }, 0),
    ];
    for (delta, expected) in cases {
        let after = before.after(delta, &defaults()).unwrap();
        assert!(copied(&before, &after) <= expected, "{}", copied(&before, &after));
    }
}

#[test]
fn unchanged_rules_are_not_compiled_again() {
    let rules: Vec<RateLimitRule> = (0..100).map(|i| rule("user", &format!("u{i}"), 60)).collect();
    let before = snapshot(rules.clone(), None);
    let mut changed = rules.clone();
    changed[7].spec.limit = 20;
    let after = snapshot(changed, Some(&before));
    let same = |rule: &&RateLimitRule| {
        let (before, after) = (before.rule(rule.id), after.rule(rule.id));
        Arc::ptr_eq(before.unwrap(), after.unwrap())
    };
    assert_eq!(rules.iter().filter(same).count(), 99);
}

#[test]
fn rules_keep_their_tallies() {
    const MAX: usize = Snapshot::MAX_COUNTED;
    let mut rules: Vec<RateLimitRule> =
        (0..MAX + 5).map(|i| rule("user", &format!("u{i}"), 60)).collect();
    for (i, rule) in rules.iter_mut().enumerate() {
        rule.created_at = Timestamp::from_micros(i as u64);
    }
    let counted = |snapshot: &Snapshot| {
        let ids = snapshot.counted().filter_map(|rule| rule.id());
        ids.collect::<BTreeSet<RuleId>>()
    };
    let before = snapshot(rules.clone(), None);
    let oldest: BTreeSet<RuleId> = rules[..MAX].iter().map(|rule| rule.id).collect();
    assert_eq!(counted(&before), oldest);
    before.rule(rules[MAX].id).unwrap().tally().count(true);
    assert_eq!(before.others().allowed(), 1);

    // A free tally goes to the next rule that is added or changed.
    let delta = RuleDelta { deleted: vec![rules[3].id], ..RuleDelta::default() };
    let deleted = before.after(delta, &defaults()).unwrap();
    assert_eq!(counted(&deleted).len(), MAX - 1);
    let mut changed = rules[MAX].clone();
    changed.spec.limit = 20;
    let delta = RuleDelta { changed: vec![changed.clone()], ..RuleDelta::default() };
    let after = deleted.after(delta, &defaults()).unwrap();
    assert!(counted(&after).contains(&changed.id));
    assert_eq!(
        (after.rule(changed.id).unwrap().tally().allowed(), after.others().allowed()),
        (0, 1)
    );

    // An older rule does not take the tally of another, even on a full load.
    let mut late = rule("user", "late", 60);
    late.created_at = Timestamp::from_micros(0);
    rules.push(late.clone());
    let again = snapshot(rules, Some(&before));
    assert_eq!(counted(&again), oldest);
    again.rule(late.id).unwrap().tally().count(false);
    assert_eq!((again.others().allowed(), again.others().denied()), (1, 1));
}

/// Changes of rules by index: new fields, or a deletion.
type Step = Vec<(usize, Option<(usize, usize, i64, bool)>)>;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let spec = (0..3_usize, 0..8_usize, 1..12_i64, any::<bool>());
    let change = (0..40_usize, proptest::option::weighted(0.8, spec));
    proptest::collection::vec(proptest::collection::vec(change, 1..12), 1..20)
}

const PATTERNS: [&str; 8] = ["*", "a*", "ab*", "abc*", "ä*", "a", "abc", "äb"];

proptest! {
    #[test]
    fn applying_deltas_equals_compiling_all_rules(steps in steps()) {
        let mut rules: BTreeMap<usize, RateLimitRule> = BTreeMap::new();
        let mut current = snapshot(Vec::new(), None);
        for (number, step) in steps.into_iter().enumerate() {
            let revision = Revision(number as i64 + 2);
            let mut delta = RuleDelta { revision, ..RuleDelta::default() };
            // Each rule changes once at most, as in a delta of a repository.
            let step: BTreeMap<usize, _> = step.into_iter().collect();
            for (which, fields) in step {
                let old = rules.remove(&which);
                let Some((scope, pattern, window, enabled)) = fields else {
                    delta.deleted.push(old.map_or_else(RuleId::random, |rule| rule.id));
                    continue;
                };
                let mut new = rule(Scope::ALL[scope].name(), PATTERNS[pattern], window);
                new.id = old.map_or(new.id, |old| old.id);
                new.spec.enabled = enabled;
                new.spec.limit = number as u32 + 1;
                delta.changed.push(new.clone());
                rules.insert(which, new);
            }
            current = current.after(delta, &defaults()).unwrap();
            let all = rules.values().cloned().collect();
            let fresh = Snapshot::compile(revision, all, &defaults(), None).unwrap();
            prop_assert_eq!(contents(&current), contents(&fresh));
            for identifier in ["a", "ab", "abc", "abcd", "b", "äb", "ä"] {
                for scope in Scope::ALL {
                    let found = |snapshot: &Snapshot| {
                        let levels = snapshot.levels(scope, identifier);
                        levels.map(|matched| {
                            let ids = matched.rules.iter().map(|rule| rule.id());
                            (matched.level, ids.collect::<Vec<_>>())
                        }).collect::<Vec<_>>()
                    };
                    prop_assert_eq!(found(&current), found(&fresh));
                }
            }
        }
    }
}
