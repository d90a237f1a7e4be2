//! Warnings about rules that are valid, and probably not what was meant.

use super::Selector;
use crate::{OverrideSpec, RateLimitRule, RuleSpec};

/// A warning about a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Name of the field.
    pub field: &'static str,
    /// Machine-readable reason.
    pub reason: &'static str,
    /// Human-readable message.
    pub message: String,
}

/// Attributes whose values callers usually choose freely.
const FREE_TEXTS: [&str; 10] = [
    "address",
    "body",
    "host",
    "path",
    "query",
    "referer",
    "request_id",
    "uri",
    "url",
    "user_agent",
];

impl RuleSpec {
    /// Returns warnings about the rule on its own.
    pub fn warnings(&self) -> Vec<Warning> {
        let Some(selector) = &self.selector else { return Vec::new() };
        let mut warnings = selector.never_matches();
        warnings.extend(selector.per.iter().filter_map(|name| selector.free_text(name)));
        warnings.extend(selector.no_default());
        if selector.stops && !self.enabled {
            let message = "the rule is disabled and stops others: \
                checks that it matches are not limited by any rule of a lower priority";
            warnings.push(Warning::new("stops", "exempts", message.to_owned()));
        }
        warnings
    }

    /// Returns a warning if `other` stops this rule wherever it matches.
    pub fn shadowed_by(&self, other: &RateLimitRule) -> Option<Warning> {
        let (own, by) = (self.selector.as_ref()?, other.spec.selector.as_ref()?);
        let shadowed = by.stops && by.priority > own.priority && by.covers(own);
        shadowed.then(|| {
            let message = format!(
                "never applies: rule {:?} ({}) matches whatever this rule matches, has a higher \
                 priority and stops others",
                other.display_name(),
                other.id
            );
            Warning::new("priority", "shadowed", message)
        })
    }
}

impl OverrideSpec {
    /// Returns warnings about an override of the rule.
    pub fn warnings(&self, rule: &RuleSpec) -> Vec<Warning> {
        let Some(selector) = &rule.selector else { return Vec::new() };
        let known = |name: &str| {
            selector.per().chain(selector.when().map(|(name, _)| name)).any(|other| other == name)
        };
        let unknown = self.subject.iter().filter(|(name, _)| !known(name));
        unknown
            .map(|(name, _)| {
                let message = format!(
                    "the rule neither counts per {name} nor has a condition on it: the override \
                     applies only to checks that send {name}"
                );
                Warning::new("subject", "unrelated", message)
            })
            .collect()
    }
}

impl Selector {
    fn never_matches(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for (name, condition) in &self.when {
            if condition.is_contradictory() {
                let message = format!("never matches: no value of {name} fulfils its condition");
                warnings.push(Warning::new("when", "never_matches", message));
            }
            if !condition.needs_value() && self.per.contains(name) {
                let message = format!("never matches: counts per {name}, which must not exist");
                warnings.push(Warning::new("per", "never_matches", message));
            }
        }
        warnings
    }

    /// Warns of limits by plan without a default, unless only listed plans match.
    fn no_default(&self) -> Option<Warning> {
        let limits = self.limits().filter(|limits| limits.default().is_none())?;
        let (by, lowest) = (limits.by(), limits.fallback());
        let listed = self.when().any(|(name, known)| name == by && known.is_listed());
        (!listed).then(|| {
            let message = format!(
                "has no default: checks without {by}, and those whose {by} is not listed, have the \
                 lowest limit, {lowest}"
            );
            Warning::new("limit", "no_default", message)
        })
    }

    /// Warns of an attribute with as many counters as callers have ideas.
    fn free_text(&self, name: &str) -> Option<Warning> {
        let condition = self.when.iter().find(|(other, _)| **other == *name);
        let listed = condition.is_some_and(|(_, condition)| condition.is_listed());
        let free = FREE_TEXTS.contains(&name) || condition.is_some();
        (free && !listed).then(|| {
            let message = format!(
                "counts per {name}: each of its values has a counter; if callers choose them \
                 freely, list the values in when, or count per another attribute"
            );
            Warning::new("per", "unbounded", message)
        })
    }

    /// Returns `true` if it is known that this selector matches whatever `other` matches.
    fn covers(&self, other: &Self) -> bool {
        let condition = |name: &str| other.when().find(|(known, _)| *known == name);
        let implied = self
            .when
            .iter()
            .all(|(name, own)| condition(name).is_some_and(|(_, other)| own.covers(other)));
        let counted = |name: &str| {
            other.per().any(|known| known == name)
                // Values of conditions may be lists.
                && condition(name).is_none_or(|(_, condition)| condition.needs_value())
        };
        implied && self.per().all(counted)
    }
}

impl Warning {
    const fn new(field: &'static str, reason: &'static str, message: String) -> Self {
        Self { field, reason, message }
    }
}
