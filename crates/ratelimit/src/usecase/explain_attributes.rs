//! Explains which rules apply to a check with attributes.

use std::{cmp::Reverse, sync::Arc};

use headgate::Key;
use tokio::task::spawn_blocking;

use super::{
    check::{CheckError, Resolved},
    explain::{Explain, why},
    usage::SubjectUsage,
};
use crate::{Attributes, CompiledRule, Level, RateLimitRule, Revision, Scope, Selector, Snapshot};

/// The rules of a check with attributes, each with the reason why it applies or not.
#[derive(Clone, Debug)]
pub struct AttributesExplanation {
    /// Revision of the rules.
    pub revision: Revision,
    /// The rules: those that apply, then those that come closest.
    pub rules: Vec<ExplainedSelector>,
    /// Number of further rules.
    pub others: usize,
}

/// A rule, and why it applies or not.
#[derive(Clone, Debug)]
pub struct ExplainedSelector {
    /// The rule.
    pub rule: Arc<CompiledRule>,
    /// `true` if it applies.
    pub applies: bool,
    /// Reason why it applies or not.
    pub why: String,
    /// What it counts, if it applies: the identifier, or the values of `per`.
    pub subject: Option<String>,
    /// Usage of the subject, if it has used anything.
    pub usage: Option<SubjectUsage>,
}

/// Maximum number of rules that are explained although they do not match.
const MAX_OTHERS: usize = 100;

/// Maximum number of rules that are explained because they match. The usage of each is read.
const MAX_MATCHING: usize = 100;

/// More rules than this are explained on a blocking thread.
const MAX_INLINE: usize = 1000;

impl Explain {
    /// Explains a check with attributes; see
    /// [`AttributesQuestion::defaulted`](super::AttributesQuestion::defaulted).
    pub async fn explain_attributes(
        &self,
        attributes: Attributes<'static>,
        defaulted: Option<Scope>,
    ) -> Result<AttributesExplanation, CheckError> {
        let snapshot = self.catalog.load();
        let revision = snapshot.revision();
        let explain = move || explained(&snapshot, &attributes, defaulted);
        let explained = if self.catalog.load().len() <= MAX_INLINE {
            explain()?
        } else {
            spawn_blocking(explain).await.unwrap_or(Ok((Vec::new(), 0)))?
        };
        let (mut rules, others) = explained;
        for rule in &mut rules {
            let scope = rule.rule.rule().map_or(Scope::User, |rule| rule.spec.scope);
            if let Some(Ok(key)) = rule.subject.as_deref().map(Key::new) {
                rule.usage = self.usage.of_subject(&rule.rule, scope, key).await;
            }
        }
        Ok(AttributesExplanation { revision, rules, others })
    }
}

/// Returns the rules that match or come close, and the number of others.
fn explained(
    snapshot: &Snapshot,
    attributes: &Attributes<'_>,
    defaulted: Option<Scope>,
) -> Result<(Vec<ExplainedSelector>, usize), CheckError> {
    let resolved = Resolved::unbounded(snapshot, attributes, defaulted)?;
    let holds = holds(resolved.selected);
    let mut rules = of_subjects(snapshot, attributes, defaulted, &resolved);
    let mut others: Vec<(usize, ExplainedSelector)> = Vec::new();
    for rule in snapshot.with_selector() {
        let Some(selector) = rule.selector() else { continue };
        let mismatches: Vec<String> =
            selector.mismatches(attributes).map(|mismatch| mismatch.to_string()).collect();
        let subject = resolved.subject_of(rule);
        let why = match (subject, mismatches.is_empty(), rule.is_enabled()) {
            (_, false, _) => mismatches.join("; "),
            (Some(_), ..) => holds.clone(),
            (None, true, false) => "disabled: admits everything and counts nothing".to_owned(),
            (None, true, true) => STOPPED.to_owned(),
        };
        let explained = ExplainedSelector::new(rule, subject, why);
        if mismatches.is_empty() {
            rules.push(explained);
        } else {
            others.push((mismatches.len(), explained));
        }
    }
    rules.sort_by_key(|explained| {
        (!explained.applies, Reverse(priority(&explained.rule)), explained.rule.id())
    });
    others.sort_by_cached_key(|(mismatches, explained)| {
        (*mismatches, explained.rule.rule().map(RateLimitRule::display_name))
    });
    let hidden = rules.len().saturating_sub(MAX_MATCHING) + others.len().saturating_sub(MAX_OTHERS);
    rules.truncate(MAX_MATCHING);
    rules.extend(others.into_iter().take(MAX_OTHERS).map(|(_, explained)| explained));
    Ok((rules, hidden))
}

/// Explains the rules of the subjects that attributes name.
fn of_subjects(
    snapshot: &Snapshot,
    attributes: &Attributes<'_>,
    defaulted: Option<Scope>,
    resolved: &Resolved<'_, '_>,
) -> Vec<ExplainedSelector> {
    let mut rules = Vec::new();
    for scope in Scope::ALL {
        let value = attributes.get(scope.name());
        let Some(identifier) = value.and_then(|value| value.text()) else { continue };
        for (index, matched) in snapshot.levels(scope, identifier).enumerate() {
            if matched.level == Level::Default && defaulted != Some(scope) {
                continue;
            }
            for rule in matched.rules {
                let subject = resolved.subject_of(rule);
                let why = match (subject, index, rule.is_enabled()) {
                    (None, 0, true) => STOPPED,
                    (_, index, enabled) => why(matched.level, index == 0, enabled),
                };
                rules.push(ExplainedSelector::new(rule, subject, format!("{scope}: {why}")));
            }
        }
    }
    rules
}

impl ExplainedSelector {
    fn new(rule: &Arc<CompiledRule>, subject: Option<&str>, why: String) -> Self {
        Self {
            rule: Arc::clone(rule),
            applies: subject.is_some(),
            why,
            subject: subject.map(str::to_owned),
            usage: None,
        }
    }
}

const STOPPED: &str = "a rule of a higher priority matches and stops this one";

/// Returns why a rule applies, if that many match.
fn holds(matching: usize) -> String {
    let max = Selector::MAX_MATCHES;
    if matching <= max {
        return "all conditions hold".to_owned();
    }
    format!("all conditions hold, but more than {max} rules match: such checks are refused")
}

fn priority(rule: &CompiledRule) -> i32 {
    rule.selector().map_or(0, Selector::priority)
}
