//! Rules over attributes: when a rule applies, and per what it counts.

mod regex_budget;
mod subject;
mod warnings;

use std::fmt;

use serde_json::{Map, Value as Json};

pub(crate) use self::regex_budget::RegexBudget;
pub use self::warnings::Warning;
use crate::{Attributes, Condition, PlanLimits, condition::Regex};

/// The conditions of a rule over attributes, and the attributes that it counts by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// The conditions by attribute; all must hold.
    pub(crate) when: Vec<(Box<str>, Condition)>,
    /// The attributes whose values have a counter each; all checks share one if there are none.
    pub(crate) per: Vec<Box<str>>,
    /// Rules of a higher priority may stop this one.
    pub(crate) priority: i32,
    /// `true` if rules of a lower priority do not apply where this one matches.
    pub(crate) stops: bool,
    /// Limits by the value of an attribute; `None` if all checks have the rule's limit.
    pub(crate) limits: Option<PlanLimits>,
}

/// The reason why a rule does not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch<'r> {
    /// A condition is about an attribute that the check does not have.
    Missing(&'r str),
    /// A condition does not hold.
    Condition(&'r str),
    /// The rule counts by an attribute that the check does not have.
    NothingToCountBy(&'r str),
    /// The rule counts by an attribute that is a list.
    List(&'r str),
}

// === impl Selector ===

impl Selector {
    /// Maximum number of conditions.
    pub const MAX_CONDITIONS: usize = 16;

    /// Maximum number of attributes that a rule counts by.
    pub const MAX_PER: usize = 8;

    /// Priorities are between this and its negative.
    pub const MAX_PRIORITY: i32 = 1000;

    /// Maximum number of rules that may apply to one check, which bounds its batch.
    pub const MAX_MATCHES: usize = 32;

    /// Returns the conditions by attribute.
    pub fn when(&self) -> impl Iterator<Item = (&str, &Condition)> {
        self.when.iter().map(|(name, condition)| (&**name, condition))
    }

    /// Returns the conditions as they were written.
    pub fn when_json(&self) -> Json {
        let written = self.when().map(|(name, condition)| (name.to_owned(), condition.source()));
        Json::Object(written.map(|(name, source)| (name, source.clone())).collect::<Map<_, _>>())
    }

    /// Returns the attributes that the rule counts by.
    pub fn per(&self) -> impl Iterator<Item = &str> {
        self.per.iter().map(|name| &**name)
    }

    /// Returns the priority; rules of subjects have priority 0.
    pub const fn priority(&self) -> i32 {
        self.priority
    }

    /// Returns `true` if rules of a lower priority do not apply where this one matches.
    pub const fn stops(&self) -> bool {
        self.stops
    }

    /// Returns the regular expressions of all conditions.
    pub(crate) fn regexes(&self) -> impl Iterator<Item = &Regex> {
        self.when.iter().flat_map(|(_, condition)| condition.regexes())
    }

    /// Returns the limits by the value of an attribute.
    pub const fn limits(&self) -> Option<&PlanLimits> {
        self.limits.as_ref()
    }

    /// Returns `true` if the rule matches.
    pub fn matches(&self, attributes: &Attributes<'_>) -> bool {
        self.mismatches(attributes).next().is_none()
    }

    /// Returns all reasons why the rule does not match.
    pub fn mismatches<'r>(
        &'r self,
        attributes: &Attributes<'_>,
    ) -> impl Iterator<Item = Mismatch<'r>> {
        let conditions = self.when.iter().filter_map(|(name, condition)| {
            let value = attributes.get(name);
            match (condition.holds(value), value) {
                (true, _) => None,
                (false, None) => Some(Mismatch::Missing(name)),
                (false, Some(_)) => Some(Mismatch::Condition(name)),
            }
        });
        let per = self.per.iter().filter_map(|name| match attributes.get(name) {
            None => Some(Mismatch::NothingToCountBy(name)),
            Some(value) => value.text().is_none().then_some(Mismatch::List(name)),
        });
        conditions.chain(per)
    }
}

// === impl Mismatch ===

impl fmt::Display for Mismatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(name) => write!(f, "the check has no attribute {name}"),
            Self::Condition(name) => write!(f, "{name} does not fulfil the condition"),
            Self::NothingToCountBy(name) => {
                write!(f, "the rule counts per {name}, which the check does not have")
            }
            Self::List(name) => write!(f, "the rule counts per {name}, which is a list"),
        }
    }
}
