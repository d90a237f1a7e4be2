//! Limits as rules over attributes.

use std::{collections::HashSet, fmt::Write as _, path::Path};

use headgate_config::{ConfigError, Problem, YamlDocument, quoted};
use headgate_ratelimit::{Attributes, Draft, Input, SelectorDraft};
use serde_json::{Map, Value as Json};

use super::{
    LimitadorLimit, Unsupported,
    expression::{self, EntryName, Expression},
    predicate::{self, ValueTest},
    when, yaml_string,
};
use crate::{attributes, source::SourceFile};

/// The result of a conversion to rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulesConversion {
    /// A file for `headgate rules apply`.
    pub yaml: String,
    /// Number of rules in the file.
    pub rules: usize,
    /// What cannot be converted, each with the reason. Limits with a problem are not in the file.
    pub skipped: Vec<Problem>,
}

/// A limit as a rule over attributes.
struct ConvertedRule {
    name: String,
    /// Conditions by attribute, in the order of the file.
    when: Vec<(String, Json)>,
    per: Vec<String>,
    limit: u64,
    seconds: u64,
}

/// The tests of each entry, and the descriptor that they are about.
#[derive(Default)]
struct Entries {
    descriptor: Option<u64>,
    tests: Vec<(String, Vec<ValueTest>)>,
    per: Vec<String>,
    problems: Vec<Unsupported>,
}

const HEADER: &str = "\
# Converted from limits of limitador. Apply with `headgate rules apply`. The conditions on domain and
# descriptor hold for requests of Envoy if `envoy.rules: true` is configured; remove them for checks
# over REST and gRPC that do not send these attributes.
";

/// Converts the limits in the file at `path` into rules.
///
/// # Errors
///
/// The file cannot be read, or is not a list of limits.
pub fn convert_to_rules(path: &Path) -> Result<RulesConversion, ConfigError> {
    let document = YamlDocument::parse(path, &SourceFile::read(path)?.text)?;
    let limits: Vec<LimitadorLimit> = document.read()?;
    let (mut yaml, mut rules, mut skipped) = (format!("{HEADER}rules:\n"), 0, Vec::new());
    let mut names = HashSet::new();
    for (index, limit) in limits.iter().enumerate() {
        let converted = convert(limit, unique_name(limit, index, &names));
        match converted.and_then(ConvertedRule::validated) {
            Ok(rule) => {
                rules += 1;
                rule.write(&mut yaml);
                names.insert(rule.name);
            }
            Err(problems) => {
                let located = problems.into_iter().map(|Unsupported { key, message }| {
                    document.locate(Problem::new(format!("[{index}]{key}"), message))
                });
                skipped.extend(located);
            }
        }
    }
    if rules == 0 {
        yaml = format!("{HEADER}rules: []\n");
    }
    Ok(RulesConversion { yaml, rules, skipped })
}

fn convert(limit: &LimitadorLimit, name: String) -> Result<ConvertedRule, Vec<Unsupported>> {
    let mut entries = Entries::default();
    for (index, text) in limit.conditions.iter().enumerate() {
        let added = expression::parse(text)
            .and_then(predicate::tests)
            .and_then(|tests| tests.into_iter().try_for_each(|it| entries.test(it.entry, it.test)));
        if let Err(reason) = added {
            entries.refuse(format!(".conditions[{index}]"), text, &reason);
        }
    }
    for (index, text) in limit.variables.iter().enumerate() {
        if let Err(reason) = entries.count_by(text) {
            entries.refuse(format!(".variables[{index}]"), text, &reason);
        }
    }
    if limit.max_value.get() == 0 {
        let message = "a rule admits at least 1 request: convert to files of domains (without \
                       --rules), which can deny all";
        entries.problems.push(Unsupported::at(".max_value", message));
    }
    let when = entries.when(limit);
    if !entries.problems.is_empty() {
        return Err(entries.problems);
    }
    let (limit, seconds) = (limit.max_value.get(), limit.seconds.get());
    Ok(ConvertedRule { name, when, per: entries.per, limit, seconds })
}

/// Returns the name of a limit in its namespace, or its number in the file.
fn unique_name(limit: &LimitadorLimit, index: usize, taken: &HashSet<String>) -> String {
    let name = if limit.name.is_empty() { index.to_string() } else { limit.name.clone() };
    let name = format!("{}/{name}", limit.namespace);
    // Patterns have these characters, and keys of Redis.
    let name: String = name
        .chars()
        .map(|c| if c.is_control() || matches!(c, '*' | '{' | '}') { '_' } else { c })
        .collect();
    let numbered = (2..).map(|number| format!("{name} {number}"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    names.find(|name| !taken.contains(name)).unwrap_or_default()
}

// === impl Entries ===

impl Entries {
    fn test(&mut self, entry: EntryName, test: ValueTest) -> Result<(), String> {
        let key = self.key(entry)?;
        match self.tests.iter_mut().find(|(known, _)| *known == key) {
            Some((_, tests)) => tests.push(test),
            None => self.tests.push((key, vec![test])),
        }
        Ok(())
    }

    fn count_by(&mut self, text: &str) -> Result<(), String> {
        let Expression::Entry(entry) = expression::parse(text)? else {
            return Err("a rule counts by the values of entries".to_owned());
        };
        let key = self.key(entry)?;
        if !self.per.contains(&key) {
            self.per.push(key);
        }
        Ok(())
    }

    /// Returns the name of the attribute that an entry is.
    fn key(&mut self, EntryName { descriptor, key }: EntryName) -> Result<String, String> {
        if let Some(index) = descriptor {
            if self.descriptor.is_some_and(|known| known != index) {
                return Err("a rule knows one descriptor, and this is another one than before: \
                            let Envoy put these entries into one descriptor"
                    .to_owned());
            }
            self.descriptor = Some(index);
        }
        if attributes::is_reserved(&key) {
            return Err(format!("the attribute {key} is not an entry: rename the entry in Envoy"));
        }
        if Attributes::is_name(&key) {
            return Ok(key);
        }
        Err(format!("{} is not the name of an attribute: rename the entry in Envoy", quoted(&key)))
    }

    fn refuse(&mut self, key: String, text: &str, reason: &str) {
        let message = format!("cannot convert {}: {reason}", quoted(text));
        self.problems.push(Unsupported { key, message });
    }

    /// Returns the conditions by attribute: those on the domain and on the descriptor first.
    fn when(&mut self, limit: &LimitadorLimit) -> Vec<(String, Json)> {
        let mut when = Vec::from([(attributes::DOMAIN.to_owned(), domain(&limit.namespace))]);
        let is_unconditional = self.tests.is_empty() && self.per.is_empty();
        // A limit on every request counts it once, not once for each descriptor.
        if let Some(index) = self.descriptor.or(is_unconditional.then_some(0)) {
            when.push((attributes::DESCRIPTOR.to_owned(), index.into()));
        }
        for (key, tests) in &self.tests {
            match when::condition(tests) {
                Ok(condition) => when.push((key.clone(), condition)),
                Err(reason) => {
                    let message = format!("cannot convert the conditions on {key}: {reason}");
                    self.problems.push(Unsupported { key: ".conditions".to_owned(), message });
                }
            }
        }
        when
    }
}

fn domain(namespace: &str) -> Json {
    if namespace.contains('*') {
        return serde_json::json!({"equals": namespace});
    }
    namespace.into()
}

// === impl ConvertedRule ===

impl ConvertedRule {
    /// Validates the rule as the server does.
    fn validated(self) -> Result<Self, Vec<Unsupported>> {
        let number = |number: u64| Input::Given(i64::try_from(number).unwrap_or(i64::MAX));
        let when: Map<String, Json> = self.when.iter().cloned().collect();
        let draft = Draft {
            name: Input::Given(self.name.clone()),
            limit: number(self.limit),
            window_seconds: number(self.seconds),
            selector: SelectorDraft {
                when: Input::Given(Json::Object(when)),
                per: Input::Given(self.per.clone()),
                ..SelectorDraft::default()
            },
            ..Draft::default()
        };
        let Err(errors) = draft.validate(None) else { return Ok(self) };
        Err(errors.into_iter().map(|error| Unsupported::at("", &error.message)).collect())
    }

    fn write(&self, yaml: &mut String) {
        // Writing to a string cannot fail.
        let _ = writeln!(yaml, "  - name: {}\n    when:", yaml_string(&self.name));
        for (key, condition) in &self.when {
            let _ = writeln!(yaml, "      {}: {condition}", yaml_string(key));
        }
        if !self.per.is_empty() {
            let per: Vec<String> = self.per.iter().map(|key| yaml_string(key)).collect();
            let _ = writeln!(yaml, "    per: [{}]", per.join(", "));
        }
        let _ = writeln!(yaml, "    limit: {}", self.limit);
        let _ = writeln!(yaml, "    window_seconds: {}", self.seconds);
        let _ = writeln!(yaml, "    algorithm: fixed_window");
    }
}

impl Unsupported {
    fn at(key: &str, message: &str) -> Self {
        Self { key: key.to_owned(), message: message.to_owned() }
    }
}

#[cfg(test)]
mod tests;
