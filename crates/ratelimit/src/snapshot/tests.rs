use std::time::Duration;

use headgate::Timestamp;

use super::*;
use crate::Draft;

fn defaults() -> Defaults {
    Defaults {
        limit: Limit::token_bucket(100, Duration::from_secs(60)).unwrap(),
        window_seconds: 60,
        fail_mode: FailMode::Open,
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
fn windows_of_one_pattern_stack_and_those_of_others_do_not() {
    let rules = vec![rule("user", "u1", 3600), rule("user", "u1", 60), rule("user", "*", 1)];
    let snapshot = snapshot(rules, None);
    let both = vec!["u1/60".to_owned(), "u1/3600".to_owned()];
    assert_eq!(found(&snapshot, "u1"), (Level::Exact, both));
    let levels: Vec<Level> = snapshot.levels(Scope::User, "u1").map(|level| level.level).collect();
    assert_eq!(levels, [Level::Exact, Level::Any, Level::Default]);
}

#[test]
fn a_prefix_that_ends_within_a_character_matches_nothing() {
    let snapshot = snapshot(vec![rule("user", "abc*", 60)], None);
    assert_eq!(found(&snapshot, "あい").0, Level::Default);
    assert_eq!(found(&snapshot, "ab").0, Level::Default);
}

#[test]
fn a_rule_that_changes_goes_on_counting() {
    let first = rule("user", "*", 60);
    let before = snapshot(vec![first.clone()], None);
    before.rule(first.id).unwrap().tally().count(true);
    let mut changed = first.clone();
    changed.spec.limit = 20;
    let after = snapshot(vec![changed], Some(&before));
    assert_eq!(after.rule(first.id).unwrap().tally().allowed(), 1);
}

#[test]
fn every_state_of_a_subject_has_a_name() {
    let snapshot = snapshot(vec![rule("user", "u1", 10), rule("user", "*", 3600)], None);
    let suffixes = snapshot.key_suffixes(Scope::User, "u1");
    let names: Vec<&str> = suffixes.iter().map(|(.., suffix)| suffix.as_str()).collect();
    // 10 and 3600 from the rules, 60 from the default; five algorithms each.
    assert_eq!(names.len(), 15);
    assert!(names.contains(&":60") && names.contains(&":10:sliding_window"), "{names:?}");
}

#[test]
fn of_more_windows_than_may_be_the_shortest_decide() {
    let rules: Vec<RateLimitRule> =
        (1..=10).rev().map(|window| rule("user", "u1", window)).collect();
    let longest: Vec<RuleId> = rules[..2].iter().rev().map(|rule| rule.id).collect();
    let snapshot = snapshot(rules, None);
    assert_eq!(applied(&snapshot, None), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(snapshot.left_out(), longest);
    assert_eq!(applied(&snapshot, Some(10)), [10], "who asks for it");
    let suffixes = snapshot.key_suffixes(Scope::User, "u1");
    assert!(suffixes.iter().any(|(window, ..)| *window == 10), "and a reset reaches it");
}

#[test]
fn disabled_rules_take_no_place_of_those_that_decide() {
    let mut rules: Vec<RateLimitRule> = (1..=10).map(|window| rule("user", "u1", window)).collect();
    for rule in &mut rules[..9] {
        rule.spec.enabled = false;
    }
    let snapshot = snapshot(rules, None);
    assert_eq!(applied(&snapshot, None), [10]);
    assert!(snapshot.left_out().is_empty());
}

fn applied(snapshot: &Snapshot, window: Option<u64>) -> Vec<u32> {
    let matched = snapshot.matching(Scope::User, "u1");
    matched.applied(window).map(|rule| rule.window_seconds()).collect()
}

#[test]
fn rules_are_told_in_the_order_in_which_they_were_made() {
    let mut rules: Vec<RateLimitRule> =
        (0..50).map(|i| rule("user", &format!("u{i}"), 60)).collect();
    for (i, rule) in rules.iter_mut().enumerate() {
        // Some were made at the same moment.
        rule.created_at = Timestamp::from_micros(100 - i as u64 / 2);
    }
    let mut expected: Vec<(Timestamp, RuleId)> =
        rules.iter().map(|rule| (rule.created_at, rule.id)).collect();
    expected.sort();
    let snapshot = snapshot(rules, None);
    let told: Vec<Option<RuleId>> = snapshot.rules().map(|rule| rule.id()).collect();
    assert_eq!(told[..50], expected.into_iter().map(|(_, id)| Some(id)).collect::<Vec<_>>());
    assert_eq!(told[50..], [None]);
}
