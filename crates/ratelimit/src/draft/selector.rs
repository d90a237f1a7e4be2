//! Validation of the conditions of a rule.

use std::{collections::BTreeSet, sync::Arc};

use headgate_admin::{FieldError, FieldReader, Input};
use serde_json::Value as Json;

use crate::{Attributes, Condition, Pattern, PlanLimits, RuleSpec, Scope, Selector};

/// The fields of a rule over attributes before validation.
#[derive(Clone, Debug, Default)]
pub struct SelectorDraft {
    /// Conditions by attribute, a JSON object.
    pub when: Input<Json>,
    /// Attributes that the rule counts by.
    pub per: Input<Vec<String>>,
    /// See [`Selector::priority`].
    pub priority: Input<i64>,
    /// See [`Selector::stops`].
    pub stops: Input<bool>,
    /// Limits by the value of an attribute, a JSON object. They replace [`Draft::limit`].
    ///
    /// [`Draft::limit`]: super::Draft::limit
    pub limits: Input<Json>,
}

impl SelectorDraft {
    /// Returns `true` if a field has a value, so that the rule is one over attributes.
    pub const fn is_given(&self) -> bool {
        const fn given<T>(input: &Input<T>) -> bool {
            matches!(input, Input::Given(_) | Input::WrongType(_))
        }
        given(&self.when)
            || given(&self.per)
            || given(&self.priority)
            || given(&self.stops)
            || given(&self.limits)
    }

    /// Reads the limits by plan; `Null` if they are invalid. They have no current value: a rule
    /// always names its limit.
    pub(super) fn read_limits(&mut self, reader: &mut FieldReader) -> Input<PlanLimits> {
        let mut problems = Vec::new();
        let limits = std::mem::take(&mut self.limits);
        let limits = reader.read("limit", limits, "a number or an object", |json| {
            Ok(PlanLimits::parse(&json).map_err(|invalid| problems = invalid).ok())
        });
        for (reason, message) in problems {
            reader.add(FieldError { field: "limit", reason, message });
        }
        match limits {
            Input::Missing => Input::Missing,
            Input::Given(Some(limits)) => Input::Given(limits),
            _ => Input::Null,
        }
    }

    /// Validates the fields; those that are missing keep their value in `current`.
    pub(super) fn validate(
        self,
        reader: &mut FieldReader,
        limits: Option<PlanLimits>,
        current: Option<&Selector>,
    ) -> Arc<Selector> {
        let mut problems = Vec::new();
        let when = reader
            .read("when", self.when, "an object", |json| Ok(conditions(&json, &mut problems)));
        let when = when.or(current.map(|current| current.when.clone())).unwrap_or_default();
        let per = reader.read("per", self.per, "a list of strings", |names| {
            Ok(attributes(names, &mut problems))
        });
        let per = per.or(current.map(|current| current.per.clone())).unwrap_or_default();
        for (field, reason, message) in problems {
            reader.add(FieldError { field, reason, message });
        }
        let priority = reader.read("priority", self.priority, "a whole number", |number| {
            let max = Selector::MAX_PRIORITY;
            let valid = i32::try_from(number).ok().filter(|number| number.abs() <= max);
            valid.ok_or_else(|| ("invalid", format!("priority must be from -{max} to {max}")))
        });
        let priority = priority.or(current.map(Selector::priority)).unwrap_or_default();
        let stops = reader.read("stops", self.stops, "a boolean", Ok);
        let stops = stops.or(current.map(Selector::stops)).unwrap_or_default();
        Arc::new(Selector { when, per, priority, stops, limits })
    }
}

impl From<&Selector> for SelectorDraft {
    fn from(selector: &Selector) -> Self {
        Self {
            when: Input::Given(selector.when_json()),
            per: Input::Given(selector.per().map(str::to_owned).collect()),
            priority: Input::Given(selector.priority.into()),
            stops: Input::Given(selector.stops),
            limits: selector.limits().map_or(Input::Missing, |it| Input::Given(it.to_json())),
        }
    }
}

type Problem = (&'static str, &'static str, String);

fn conditions(json: &Json, problems: &mut Vec<Problem>) -> Vec<(Box<str>, Condition)> {
    let mut refuse = |reason, message| problems.push(("when", reason, message));
    let Json::Object(fields) = json else {
        refuse("wrong_type", "when must be an object".to_owned());
        return Vec::new();
    };
    if fields.len() > Selector::MAX_CONDITIONS {
        let message = format!("when may have at most {} conditions", Selector::MAX_CONDITIONS);
        refuse("too_many", message);
        return Vec::new();
    }
    let mut conditions = Vec::with_capacity(fields.len());
    for (name, source) in fields {
        if !Attributes::is_name(name) {
            refuse("invalid", invalid_name("when", name));
            continue;
        }
        match Condition::parse(source) {
            Ok(condition) => conditions.push((name.as_str().into(), condition)),
            Err(errors) => {
                for error in errors {
                    refuse("invalid", format!("when.{name}: {error}"));
                }
            }
        }
    }
    conditions
}

fn attributes(names: Vec<String>, problems: &mut Vec<Problem>) -> Vec<Box<str>> {
    let mut refuse = |reason, message| problems.push(("per", reason, message));
    if names.len() > Selector::MAX_PER {
        refuse("too_many", format!("per may have at most {} attributes", Selector::MAX_PER));
        return Vec::new();
    }
    for name in names.iter().filter(|name| !Attributes::is_name(name)) {
        refuse("invalid", invalid_name("per", name));
    }
    let distinct: BTreeSet<&String> = names.iter().collect();
    if distinct.len() < names.len() {
        refuse("duplicate", "per must not name an attribute twice".to_owned());
    }
    names.into_iter().map(Into::into).collect()
}

fn invalid_name(field: &str, name: &str) -> String {
    let shown: String = name.chars().take(Attributes::MAX_NAME_BYTES).collect();
    format!("{field}: {shown:?} is not the name of an attribute: {}", crate::AttributeError::Name)
}

/// Returns `true` if a draft is one of a rule over attributes.
pub(super) fn is_over_attributes(draft: &super::Draft, current: Option<&RuleSpec>) -> bool {
    let unset = |input: &Input<String>| matches!(input, Input::Missing | Input::Null);
    match &draft.scope {
        Input::Given(scope) => scope == Scope::Attributes.name() || draft.selector.is_given(),
        _ if draft.selector.is_given() => true,
        scope => {
            let kept = current.is_some_and(|current| current.selector.is_some());
            kept && unset(scope) && unset(&draft.identifier_pattern)
        }
    }
}

/// Returns the pattern that identifies a rule over attributes: its name.
pub(super) fn pattern_of(
    reader: &mut FieldReader,
    (scope, pattern): &(Input<String>, Input<String>),
    name: Option<&str>,
) -> Option<Pattern> {
    for (field, input) in [("scope", scope), ("identifier_pattern", pattern)] {
        if let Input::WrongType(got) = input {
            let message = format!("{field} must be a string, got {got}");
            reader.add(FieldError { field, reason: "wrong_type", message });
        }
    }
    let mut refuse = |field, reason, message: &str| {
        reader.add(FieldError { field, reason, message: message.to_owned() });
    };
    if matches!(scope, Input::Given(scope) if scope != Scope::Attributes.name()) {
        let message = "a rule has either scope and identifier_pattern, or when and per; \
            write a condition on the attribute of the scope instead. A limit by plan needs a rule \
            of the second kind, such as one with per: [user]";
        refuse("scope", "invalid", message);
    }
    if matches!(pattern, Input::Given(pattern) if Some(&**pattern) != name) {
        let message = "a rule with when or per has no identifier_pattern of its own";
        refuse("identifier_pattern", "invalid", message);
    }
    match name.map(str::parse) {
        None => refuse("name", "required", "a rule with when or per needs a name"),
        Some(Ok(pattern @ Pattern::Exact(_))) => return Some(pattern),
        Some(_) => {
            let message = "the name of a rule with when or per must not contain '*', '{' and '}'";
            refuse("name", "invalid", message);
        }
    }
    None
}

#[cfg(test)]
mod tests;
