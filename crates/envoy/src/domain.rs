//! The descriptors of a domain, compiled for matching.

use std::{collections::HashMap, sync::Arc};

use headgate_config::Problem;

use crate::{
    Descriptor,
    counter_name::CounterName,
    file::{DescriptorEntry, DomainFile},
    pattern::Pattern,
    rule::{DescriptorRule, MetricDetail},
};

/// A compiled domain.
#[derive(Debug)]
pub(crate) struct Domain {
    pub(crate) name: String,
    top: Level,
}

/// The rule that a descriptor matched.
#[derive(Debug)]
pub(crate) struct MatchedRule {
    pub(crate) rule: Arc<DescriptorRule>,
    /// Key of its counter.
    pub(crate) counter: String,
    /// Its label in metrics, where that holds values of the request.
    pub(crate) label: Option<String>,
}

/// An entry of a domain and its path.
pub(crate) struct EntryRef<'a> {
    /// Keys and values of the entries above and of this one, as in metrics.
    pub(crate) path: String,
    pub(crate) rule: Option<&'a DescriptorRule>,
    /// True if all values that it matches share one counter.
    pub(crate) is_shared: bool,
}

/// Entries at one depth, by their key.
#[derive(Debug, Default)]
struct Level(HashMap<String, KeyEntries>);

/// Entries of one key: exact values, patterns, and the key alone.
#[derive(Debug, Default)]
struct KeyEntries {
    exact: HashMap<String, Entry>,
    /// Values with wildcards, in the order of the file.
    patterns: Vec<(Pattern, Entry)>,
    /// Indexes into `patterns` by the pattern's text.
    pattern_indexes: HashMap<String, usize>,
    any: Option<Entry>,
}

#[derive(Debug)]
struct Entry {
    /// The key, and the value that is in the file.
    label: String,
    /// Replaces the value in the counter's key, where all values that a wildcard matches share one.
    shared: Option<String>,
    value_to_metric: bool,
    rule: Option<Arc<DescriptorRule>>,
    below: Level,
}

struct Compiler<'p> {
    problems: &'p mut Vec<Problem>,
    shadow_mode: bool,
    /// Detail that parent entries ask for.
    metric_detail: MetricDetail,
}

// === impl Domain ===

impl Domain {
    /// Compiles a file, and adds its problems to `problems`.
    pub(crate) fn compile(file: &DomainFile, problems: &mut Vec<Problem>) -> Self {
        let name = required(file.domain.as_ref(), "domain", problems).unwrap_or_default();
        let metric_detail = MetricDetail::None;
        let mut compiler = Compiler { problems, shadow_mode: file.shadow_mode, metric_detail };
        let top = compiler.level(&file.descriptors, "descriptors", "");
        Self { name: name.to_owned(), top }
    }

    /// Returns the rule of a descriptor: its limit override, or the rule of the most specific entry
    /// at its depth.
    pub(crate) fn find(&self, descriptor: &Descriptor<'_>) -> Option<MatchedRule> {
        let mut counter = CounterName::new(&self.name);
        // An invalid override is ignored.
        if let Some(rule) = descriptor.limit_override.and_then(DescriptorRule::from_override) {
            for (key, value) in &descriptor.entries {
                counter.entry(key, value);
            }
            return Some(MatchedRule {
                rule: Arc::new(rule),
                counter: counter.finish(),
                label: None,
            });
        }
        let mut path: Vec<&Entry> = Vec::with_capacity(descriptor.entries.len());
        for (key, value) in &descriptor.entries {
            let level = path.last().map_or(&self.top, |entry| &entry.below);
            let entry = level.0.get(*key)?.find(value)?;
            counter.entry(key, entry.shared.as_deref().unwrap_or(value));
            path.push(entry);
        }
        let rule = Arc::clone(path.last()?.rule.as_ref()?);
        let label =
            (rule.metric_detail != MetricDetail::None).then(|| label(&rule, &path, descriptor));
        Some(MatchedRule { rule, counter: counter.finish(), label })
    }

    /// Every entry, in no particular order.
    pub(crate) fn entries(&self) -> Vec<EntryRef<'_>> {
        let mut entries = Vec::new();
        self.top.collect("", &mut entries);
        entries
    }

    /// Every rule, in no particular order.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &DescriptorRule> {
        self.entries().into_iter().filter_map(|entry| entry.rule)
    }
}

/// The labels of the entries, with values of the request where the rule asks for them.
fn label(rule: &DescriptorRule, path: &[&Entry], descriptor: &Descriptor<'_>) -> String {
    let label = |(entry, (key, value)): (&&Entry, &(&str, &str))| {
        let is_named = rule.metric_detail == MetricDetail::All || entry.value_to_metric;
        // Values that share a counter share its metrics.
        if is_named && entry.shared.is_none() {
            format!("{key}_{value}")
        } else {
            entry.label.clone()
        }
    };
    path.iter().zip(&descriptor.entries).map(label).collect::<Vec<_>>().join(".")
}

fn joined(above: &str, label: &str) -> String {
    if above.is_empty() { label.to_owned() } else { format!("{above}.{label}") }
}

fn required<'a>(
    value: Option<&'a String>,
    key: &str,
    problems: &mut Vec<Problem>,
) -> Option<&'a str> {
    let message = match value.map(String::as_str) {
        Some("") => "must not be empty",
        None => "missing",
        filled => return filled,
    };
    problems.push(Problem::new(key, message));
    None
}

// === impl Level ===

impl Level {
    fn collect<'a>(&'a self, above: &str, entries: &mut Vec<EntryRef<'a>>) {
        for of_key in self.0.values() {
            let patterns = of_key.patterns.iter().map(|(_, entry)| entry);
            for entry in of_key.exact.values().chain(patterns).chain(&of_key.any) {
                let path = joined(above, &entry.label);
                entry.below.collect(&path, entries);
                let is_shared = entry.shared.is_some();
                entries.push(EntryRef { path, rule: entry.rule.as_deref(), is_shared });
            }
        }
    }
}

// === impl KeyEntries ===

impl KeyEntries {
    /// Returns the entry of the value itself, else of the first pattern that matches, else of the
    /// key alone.
    fn find(&self, value: &str) -> Option<&Entry> {
        let pattern = || {
            let same = if value.contains('*') { self.pattern_indexes.get(value) } else { None };
            let same = same.map(|index| &self.patterns[*index]);
            same.or_else(|| self.patterns.iter().find(|(pattern, _)| pattern.matches(value)))
        };
        self.exact.get(value).or_else(|| Some(&pattern()?.1)).or(self.any.as_ref())
    }

    /// Adds an entry; returns `false` if there is one of the same value.
    fn insert(&mut self, value: &str, entry: Entry) -> bool {
        match Pattern::new(value) {
            _ if value.is_empty() => self.any.replace(entry).is_none(),
            Some(pattern) => {
                self.patterns.push((pattern, entry));
                let index = self.patterns.len() - 1;
                self.pattern_indexes.insert(value.to_owned(), index).is_none()
            }
            None => self.exact.insert(value.to_owned(), entry).is_none(),
        }
    }
}

// === impl Compiler ===

impl Compiler<'_> {
    fn level(&mut self, entries: &[DescriptorEntry], path: &str, above: &str) -> Level {
        let mut level = Level::default();
        for (index, written) in entries.iter().enumerate() {
            let path = format!("{path}[{index}]");
            let Some(key) = required(written.key.as_ref(), &format!("{path}.key"), self.problems)
            else {
                continue;
            };
            let entry = self.entry(key, written, &path, above);
            if !level.0.entry(key.to_owned()).or_default().insert(&written.value, entry) {
                let message = "duplicate key and value: remove one of the two entries";
                self.problems.push(Problem::new(path, message));
            }
        }
        level
    }

    fn entry(&mut self, key: &str, written: &DescriptorEntry, path: &str, above: &str) -> Entry {
        let label = match written.value.as_str() {
            "" => key.to_owned(),
            value => format!("{key}_{value}"),
        };
        let full = joined(above, &label);
        let metric_detail = match written {
            DescriptorEntry { detailed_metric: true, .. } => MetricDetail::All,
            DescriptorEntry { value_to_metric: true, .. } => MetricDetail::Marked,
            _ => self.metric_detail,
        };
        let mut problems = Vec::new();
        let rule = DescriptorRule::new(
            written,
            full.clone(),
            metric_detail,
            self.shadow_mode,
            &mut problems,
        );
        if written.share_threshold && !written.value.contains('*') {
            let message = "only a value with a wildcard (*) can share its threshold";
            problems.push(Problem::new("share_threshold", message));
        }
        self.problems.extend(problems.into_iter().map(|problem| problem.within(path)));
        let outer = self.metric_detail;
        if metric_detail == MetricDetail::Marked {
            self.metric_detail = metric_detail;
        }
        let below = self.level(&written.descriptors, &format!("{path}.descriptors"), &full);
        self.metric_detail = outer;
        Entry {
            label,
            shared: written.share_threshold.then(|| written.value.clone()),
            value_to_metric: written.value_to_metric,
            rule: rule.map(Arc::new),
            below,
        }
    }
}
