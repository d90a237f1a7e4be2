//! The descriptors of a domain, compiled for matching.

use std::{collections::HashMap, sync::Arc};

use headgate_config::Problem;

use super::{
    file::{DescriptorEntry, DomainFile},
    key::Name,
    pattern::Pattern,
    question::Descriptor,
    rule::{Detail, Rule},
};

/// A domain that makes sense.
#[derive(Debug)]
pub(crate) struct Domain {
    pub(super) name: String,
    top: Level,
}

/// What a descriptor matched.
#[derive(Debug)]
pub(super) struct Matched {
    pub(super) rule: Arc<Rule>,
    /// The name of its counter.
    pub(super) subject: String,
    /// Its name in metrics, where that holds what the caller sent.
    pub(super) label: Option<String>,
}

/// What can come next in a descriptor, by its key.
#[derive(Debug, Default)]
struct Level(HashMap<String, Choices>);

/// What a key's value can be.
#[derive(Debug, Default)]
struct Choices {
    exact: HashMap<String, Entry>,
    /// Values with wildcards, in the order of the file.
    patterns: Vec<(Pattern, Entry)>,
    /// Their places in `patterns`, by their texts.
    places: HashMap<String, usize>,
    any: Option<Entry>,
}

#[derive(Debug)]
struct Entry {
    /// The key, and the value that stands in the file.
    label: String,
    /// In place of the value, where all that a wildcard matches share one counter.
    shared: Option<String>,
    value_to_metric: bool,
    rule: Option<Arc<Rule>>,
    below: Level,
}

/// What is known on the way down.
struct Compiler<'p> {
    problems: &'p mut Vec<Problem>,
    shadow: bool,
    /// Whether a descriptor above shows its values in metrics.
    detail: Detail,
}

// === impl Domain ===

impl Domain {
    /// Compiles what a file says, and adds what makes no sense to `problems`.
    pub(super) fn compile(file: &DomainFile, problems: &mut Vec<Problem>) -> Self {
        if file.domain.is_empty() {
            problems.push(Problem::new("domain", "expected a name that is not empty"));
        }
        let mut compiler = Compiler { problems, shadow: file.shadow_mode, detail: Detail::None };
        let top = compiler.level(&file.descriptors, "descriptors", "");
        Self { name: file.domain.clone(), top }
    }

    /// The limit of a descriptor: what it brings along, or that of the most specific entry as deep as it is.
    pub(super) fn find(&self, descriptor: &Descriptor<'_>) -> Option<Matched> {
        let mut name = Name::new(&self.name);
        // What cannot be a limit takes no other's place.
        if let Some(rule) = descriptor.instead.and_then(|instead| Rule::overriding(instead.0?)) {
            for (key, value) in &descriptor.entries {
                name.entry(key, value);
            }
            return Some(Matched { rule: Arc::new(rule), subject: name.finish(), label: None });
        }
        let mut path: Vec<&Entry> = Vec::with_capacity(descriptor.entries.len());
        for (key, value) in &descriptor.entries {
            let level = path.last().map_or(&self.top, |entry| &entry.below);
            let entry = level.0.get(*key)?.choose(value)?;
            name.entry(key, entry.shared.as_deref().unwrap_or(value));
            path.push(entry);
        }
        let rule = Arc::clone(path.last()?.rule.as_ref()?);
        let label = (rule.detail != Detail::None).then(|| label(&rule, &path, descriptor));
        Some(Matched { rule, subject: name.finish(), label })
    }

    /// All rules.
    pub(super) fn rules(&self) -> Vec<Arc<Rule>> {
        let mut rules = Vec::new();
        self.top.collect(&mut rules);
        rules
    }
}

/// The path, with the values that the caller sent where metrics shall name them.
fn label(rule: &Rule, path: &[&Entry], descriptor: &Descriptor<'_>) -> String {
    let named = |(entry, (key, value)): (&&Entry, &(&str, &str))| {
        let named = rule.detail == Detail::All || entry.value_to_metric;
        // What shares a counter shares its numbers.
        if named && entry.shared.is_none() { format!("{key}_{value}") } else { entry.label.clone() }
    };
    path.iter().zip(&descriptor.entries).map(named).collect::<Vec<_>>().join(".")
}

// === impl Level ===

impl Level {
    fn collect(&self, rules: &mut Vec<Arc<Rule>>) {
        for choices in self.0.values() {
            let patterns = choices.patterns.iter().map(|(_, entry)| entry);
            for entry in choices.exact.values().chain(patterns).chain(&choices.any) {
                rules.extend(entry.rule.clone());
                entry.below.collect(rules);
            }
        }
    }
}

// === impl Choices ===

impl Choices {
    /// The value itself, else the first pattern that it matches, else whatever goes for all.
    fn choose(&self, value: &str) -> Option<&Entry> {
        let pattern = || {
            let same = if value.contains('*') { self.places.get(value) } else { None };
            let same = same.map(|place| &self.patterns[*place]);
            same.or_else(|| self.patterns.iter().find(|(pattern, _)| pattern.matches(value)))
        };
        self.exact.get(value).or_else(|| Some(&pattern()?.1)).or(self.any.as_ref())
    }

    /// Puts `entry` in its place; `false` if that is taken.
    fn put(&mut self, value: &str, entry: Entry) -> bool {
        match Pattern::new(value) {
            _ if value.is_empty() => self.any.replace(entry).is_none(),
            Some(pattern) => {
                self.patterns.push((pattern, entry));
                self.places.insert(value.to_owned(), self.patterns.len() - 1).is_none()
            }
            None => self.exact.insert(value.to_owned(), entry).is_none(),
        }
    }
}

// === impl Compiler ===

impl Compiler<'_> {
    fn level(&mut self, entries: &[DescriptorEntry], path: &str, above: &str) -> Level {
        let mut level = Level::default();
        for (place, written) in entries.iter().enumerate() {
            let path = format!("{path}[{place}]");
            if written.key.is_empty() {
                self.problems
                    .push(Problem::new(format!("{path}.key"), "expected a key that is not empty"));
                continue;
            }
            let entry = self.entry(written, &path, above);
            if !level.0.entry(written.key.clone()).or_default().put(&written.value, entry) {
                let message = "the same key and value stand here before: remove one of the two";
                self.problems.push(Problem::new(path, message));
            }
        }
        level
    }

    fn entry(&mut self, written: &DescriptorEntry, path: &str, above: &str) -> Entry {
        let label = match written.value.as_str() {
            "" => written.key.clone(),
            value => format!("{}_{value}", written.key),
        };
        let full = if above.is_empty() { label.clone() } else { format!("{above}.{label}") };
        let detail = match written {
            DescriptorEntry { detailed_metric: true, .. } => Detail::All,
            DescriptorEntry { value_to_metric: true, .. } => Detail::Some,
            _ => self.detail,
        };
        let rule =
            Rule::new(written, full.clone(), detail, self.shadow).unwrap_or_else(|problem| {
                self.problems.push(problem.within(path));
                None
            });
        if written.share_threshold && !written.value.contains('*') {
            let message = "only a value with a wildcard (*) can share its threshold";
            self.problems.push(Problem::new(format!("{path}.share_threshold"), message));
        }
        let outer = self.detail;
        if detail == Detail::Some {
            self.detail = detail;
        }
        let below = self.level(&written.descriptors, &format!("{path}.descriptors"), &full);
        self.detail = outer;
        Entry {
            label,
            shared: written.share_threshold.then(|| written.value.clone()),
            value_to_metric: written.value_to_metric,
            rule: rule.map(Arc::new),
            below,
        }
    }
}
