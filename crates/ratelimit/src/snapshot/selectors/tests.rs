use std::time::Duration;

use headgate::{FailMode, LeasePolicy, Limit, Timestamp};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;
use crate::{AttributeValue, Defaults, Draft, RateLimitRule, SelectorDraft, tally::Tally};

fn rule(when: Json, per: &[&str]) -> Arc<CompiledRule> {
    let draft = Draft {
        name: "rule".to_owned().into(),
        limit: 10.into(),
        window_seconds: 60.into(),
        selector: SelectorDraft {
            when: when.into(),
            per: per.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>().into(),
            ..SelectorDraft::default()
        },
        ..Draft::default()
    };
    let now = Timestamp::from_micros(1);
    let spec = draft.validate(None).unwrap();
    let rule = RateLimitRule { id: RuleId::random(), spec, created_at: now, updated_at: now };
    let defaults = Defaults {
        limit: Limit::token_bucket(1, Duration::from_secs(60)).unwrap(),
        window_seconds: 60,
        fail_mode: FailMode::Open,
        lease: LeasePolicy::OFF,
    };
    Arc::new(CompiledRule::new(rule, &defaults, Arc::new(Tally::default()), true).unwrap())
}

fn attributes(pairs: &[(&str, &str)]) -> Attributes<'static> {
    let mut attributes = Attributes::default();
    for (name, value) in pairs {
        attributes.insert((*name).to_owned(), (*value).to_owned()).unwrap();
    }
    attributes
}

#[test]
fn a_check_tests_only_rules_that_can_match() {
    let mut selectors = Selectors::default();
    // The first condition of all rules is the same: the other ones tell them apart.
    for i in 0..2000 {
        let tenant = format!("t{i}");
        let own = match i % 4 {
            0 => json!({"method": "POST", "tenant": tenant}),
            1 => json!({"method": "POST", "tenant": {"prefix": tenant + "-"}}),
            2 => json!({"method": "POST", "tenant": {"suffix": format!("-{tenant}")}}),
            _ => {
                json!({"method": "POST", "address": {"in": [format!("10.{}.{}.0/24", i / 256, i % 256)]}})
            }
        };
        selectors.add(&rule(own, &["tenant"]));
    }
    let check = attributes(&[("method", "POST"), ("tenant", "t8"), ("address", "10.0.3.7")]);
    assert_eq!(selectors.matching(&check).len(), 2);
    assert!(selectors.tested(&check) <= 4, "{}", selectors.tested(&check));
}

#[test]
fn a_change_copies_few_shards() {
    let mut selectors = Selectors::default();
    let rules: Vec<_> = (0..1000).map(|i| rule(json!({"tenant": format!("t{i}")}), &[])).collect();
    for rule in &rules {
        selectors.add(rule);
    }
    let mut changed = selectors.clone();
    changed.remove(&rules[7]);
    changed.add(&rule(json!({"tenant": "new"}), &[]));
    assert!(changed.copied(&selectors) <= 4, "{}", changed.copied(&selectors));
    for rule in &rules {
        selectors.remove(rule);
    }
    assert_eq!(selectors.sizes(), (0, 0, 0), "nothing is left behind");
}

const NAMES: [&str; 4] = ["a", "b", "c", "ab"];
const TEXTS: [&str; 10] = ["", "x", "xy", "xyz", "yz", "z", "10.0.0.1", "10.1.0.1", "5", "é"];

fn text() -> impl Strategy<Value = String> {
    proptest::sample::select(&TEXTS[..]).prop_map(str::to_owned)
}

fn condition() -> impl Strategy<Value = Json> {
    let glob = proptest::sample::select(&["x*", "*z", "*", "x*z", "*y*", "é*", "10.*"][..]);
    let network = proptest::sample::select(&["10.0.0.0/8", "10.1.0.0/16", "0.0.0.0/0"][..]);
    prop_oneof![
        text().prop_map(Json::from),
        glob.prop_map(Json::from),
        proptest::collection::vec(text(), 1..4).prop_map(Json::from),
        (text(), text()).prop_map(|(prefix, other)| json!([format!("{prefix}*"), other])),
        text().prop_map(|text| json!({"prefix": text})),
        text().prop_map(|text| json!({"suffix": text})),
        network.clone().prop_map(|network| json!({"in": [network]})),
        network.prop_map(|network| json!({"not_in": [network]})),
        (0..9).prop_map(|min| json!({"min": min})),
        any::<bool>().prop_map(|exists| json!({"exists": exists})),
        text().prop_map(|text| json!({"not": text})),
        Just(json!({"regex": "x.?|[0-9.]+"})),
    ]
}

fn value() -> impl Strategy<Value = AttributeValue<'static>> {
    let list = proptest::collection::vec(text().prop_map(Into::into), 0..3);
    prop_oneof![
        4 => text().prop_map(AttributeValue::from),
        1 => list.prop_map(AttributeValue::List),
    ]
}

type Rules = Vec<(Vec<(usize, Json)>, Vec<usize>)>;

fn rules() -> impl Strategy<Value = Rules> {
    let when = proptest::collection::vec((0..NAMES.len(), condition()), 0..4);
    let per = proptest::collection::vec(0..NAMES.len(), 0..2);
    proptest::collection::vec((when, per), 1..30)
}

proptest! {
    #[test]
    fn the_index_finds_what_a_search_of_all_rules_finds(
        specs in rules(),
        removed in proptest::collection::vec(any::<prop::sample::Index>(), 0..20),
        checks in proptest::collection::vec(
            proptest::collection::btree_map(0..NAMES.len(), value(), 0..4), 1..20),
    ) {
        let mut all: Vec<Arc<CompiledRule>> = specs.into_iter().map(|(when, per)| {
            let when = when.into_iter().map(|(name, json)| (NAMES[name].to_owned(), json));
            let per: Vec<&str> = per.into_iter().map(|name| NAMES[name]).collect();
            rule(Json::Object(when.collect()), &per)
        }).collect();
        let mut selectors = Selectors::default();
        for rule in &all {
            selectors.add(rule);
        }
        for index in removed {
            if !all.is_empty() {
                let gone = all.swap_remove(index.index(all.len()));
                selectors.remove(&gone);
            }
        }
        for check in checks {
            let mut attributes = Attributes::default();
            for (name, value) in check {
                attributes.insert(NAMES[name], value).unwrap();
            }
            let matches = |rule: &&Arc<CompiledRule>| rule.selector().unwrap().matches(&attributes);
            let ids = |rules: &mut dyn Iterator<Item = &Arc<CompiledRule>>| {
                let mut ids: Vec<_> = rules.map(|rule| rule.id()).collect();
                ids.sort();
                ids
            };
            let found = ids(&mut selectors.matching(&attributes).into_iter());
            prop_assert_eq!(found, ids(&mut all.iter().filter(matches)));
        }
        for gone in all {
            selectors.remove(&gone);
        }
        prop_assert_eq!(selectors.sizes(), (0, 0, 0));
    }
}
