//! Property: where a condition can be converted, its rule applies to exactly the descriptors that the
//! condition holds for.

use proptest::prelude::*;

use super::{converted, selector};
use crate::{Descriptor, Hits, attributes};

/// A condition, evaluated as limitador does: an entry that is missing is an error, which does not
/// hold, negated or not.
#[derive(Clone, Debug)]
enum Naive {
    Equals(&'static str, &'static str),
    Differs(&'static str, &'static str),
    In(&'static str, Vec<&'static str>),
    Call(&'static str, &'static str, &'static str),
    Matches(&'static str, usize),
    AtLeast(&'static str, i64),
    Less(&'static str, i64),
    Has(&'static str),
    Not(Box<Naive>),
    And(Box<Naive>, Box<Naive>),
    Or(Box<Naive>, Box<Naive>),
}

type Finds = fn(&str) -> bool;

type Entries = [(&'static str, &'static str)];

const KEYS: [&str; 3] = ["a", "b", "req.method"];
const VALUES: [&str; 9] = ["", "x", "xy", "yx", "x*", "*", "7", "12", "-3"];
/// Expressions, and what they find.
const REGEXES: [(&str, Finds); 6] = [
    ("^x", |text| text.starts_with('x')),
    ("x$", |text| text.ends_with('x')),
    ("^xy$", |text| text == "xy"),
    ("x|7", |text| text.contains(['x', '7'])),
    ("^x|2$", |text| text.starts_with('x') || text.ends_with('2')),
    (r"\\*", |text| text.contains('*')),
];

impl Naive {
    fn text(&self) -> String {
        let key = |key: &str| format!("descriptors[0]['{key}']");
        match self {
            Self::Equals(name, value) => format!("{} == '{value}'", key(name)),
            Self::Differs(name, value) => format!("{} != \"{value}\"", key(name)),
            Self::In(name, values) => {
                let values: Vec<String> = values.iter().map(|value| format!("'{value}'")).collect();
                format!("{} in [{}]", key(name), values.join(", "))
            }
            Self::Call(name, function, value) => format!("{}.{function}('{value}')", key(name)),
            Self::Matches(name, index) => format!("{}.matches('{}')", key(name), REGEXES[*index].0),
            Self::AtLeast(name, number) => format!("int({}) >= {number}", key(name)),
            Self::Less(name, number) => format!("int({}) < {number}", key(name)),
            Self::Has(name) => format!("has({})", key(name)),
            Self::Not(inner) => format!("!({})", inner.text()),
            Self::And(left, right) => format!("({}) && ({})", left.text(), right.text()),
            Self::Or(left, right) => format!("({}) || ({})", left.text(), right.text()),
        }
    }

    /// Returns `None` for an error.
    fn holds(&self, entries: &Entries) -> Option<bool> {
        let value = |name: &str| entries.iter().find(|(key, _)| *key == name).map(|(_, it)| *it);
        let number = |name: &str| value(name)?.parse::<i64>().ok();
        match self {
            Self::Equals(name, expected) => Some(value(name)? == *expected),
            Self::Differs(name, expected) => Some(value(name)? != *expected),
            Self::In(name, values) => Some(values.contains(&value(name)?)),
            Self::Call(name, "startsWith", part) => Some(value(name)?.starts_with(part)),
            Self::Call(name, "endsWith", part) => Some(value(name)?.ends_with(part)),
            Self::Call(name, _, part) => Some(value(name)?.contains(part)),
            Self::Matches(name, index) => Some(REGEXES[*index].1(value(name)?)),
            Self::AtLeast(name, least) => Some(number(name)? >= *least),
            Self::Less(name, most) => Some(number(name)? < *most),
            Self::Has(name) => Some(value(name).is_some()),
            Self::Not(inner) => Some(!inner.holds(entries)?),
            Self::And(left, right) => match (left.holds(entries), right.holds(entries)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (left, right) => left.and(right),
            },
            Self::Or(left, right) => match (left.holds(entries), right.holds(entries)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (left, right) => left.and(right),
            },
        }
    }
}

fn naive() -> impl Strategy<Value = Naive> {
    let key = || prop::sample::select(&KEYS[..]);
    let value = || prop::sample::select(&VALUES[..]);
    let function = prop::sample::select(&["startsWith", "endsWith", "contains"][..]);
    let atom = prop_oneof![
        (key(), value()).prop_map(|(key, value)| Naive::Equals(key, value)),
        (key(), value()).prop_map(|(key, value)| Naive::Differs(key, value)),
        (key(), prop::collection::vec(value(), 1..4)).prop_map(|(key, it)| Naive::In(key, it)),
        (key(), function, value()).prop_map(|(key, function, it)| Naive::Call(key, function, it)),
        (key(), 0..REGEXES.len()).prop_map(|(key, index)| Naive::Matches(key, index)),
        (key(), -4..14_i64).prop_map(|(key, number)| Naive::AtLeast(key, number)),
        (key(), -4..14_i64).prop_map(|(key, number)| Naive::Less(key, number)),
        key().prop_map(Naive::Has),
    ];
    atom.prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|inner| Naive::Not(Box::new(inner))),
            (inner.clone(), inner.clone())
                .prop_map(|(left, right)| Naive::And(Box::new(left), Box::new(right))),
            (inner.clone(), inner)
                .prop_map(|(left, right)| Naive::Or(Box::new(left), Box::new(right))),
        ]
    })
}

fn entries() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    let value = || prop::option::of(prop::sample::select(&VALUES[..]));
    [value(), value(), value()].prop_map(|values| {
        KEYS.iter().zip(values).filter_map(|(key, value)| Some((*key, value?))).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_rule_applies_where_the_condition_holds(
        condition in naive(),
        descriptors in prop::collection::vec(entries(), 1..12),
    ) {
        let text = condition.text();
        let conversion = converted(&[(&[&text], &[])]);
        prop_assert_eq!(conversion.rules + conversion.skipped.len(), 1, "{}", text);
        if conversion.rules == 1 {
            let selector = selector(&conversion);
            for entries in descriptors {
                let expected = condition.holds(&entries) == Some(true);
                let (hits, limit_override) = (Hits::Take(1), None);
                let descriptor = Descriptor { entries: entries.clone(), hits, limit_override };
                let attributes = attributes::of("shop", 0, &descriptor).unwrap();
                prop_assert_eq!(selector.matches(&attributes), expected, "{} {:?}", text, entries);
            }
        }
    }
}
