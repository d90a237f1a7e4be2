//! Explains which rules apply to a check with attributes.

use std::{cmp::Reverse, sync::Arc};

use headgate::{Key, Timestamp};
use tokio::task::spawn_blocking;

use super::{
    check::{CheckError, Resolved},
    explain::{
        Explain,
        limit::{self, ExplainedLimit},
        why,
    },
    usage::SubjectUsage,
};
use crate::{
    Attributes, CompiledRule, Level, RateLimitRule, Revision, RuleId, RuleSpec, Scope, Selector,
    Snapshot,
};

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
    /// The rule, with the limit of the check.
    pub rule: Arc<CompiledRule>,
    /// `true` if it applies.
    pub applies: bool,
    /// Reason why it applies or not.
    pub why: String,
    /// Reason for its limit, unless it is the rule's only one.
    pub limit: Option<ExplainedLimit>,
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
        let now = self.catalog.now();
        let explain = move || explained(&snapshot, &attributes, defaulted, now);
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

impl Explain {
    /// Explains a rule that is not stored, as if it were the only one.
    pub fn explain_draft(
        &self,
        spec: RuleSpec,
        attributes: &Attributes<'_>,
    ) -> Result<Option<ExplainedSelector>, CheckError> {
        let now = self.catalog.now();
        let rule = RateLimitRule { id: RuleId::random(), spec, created_at: now, updated_at: now };
        let (revision, defaults) = (Revision::default(), self.catalog.defaults());
        // A valid rule can be compiled.
        let Ok(alone) = Snapshot::compile(revision, vec![rule], &defaults, None) else {
            return Ok(None);
        };
        Ok(explained(&alone, attributes, None, now)?.0.into_iter().next())
    }
}

/// Returns the rules that match or come close, and the number of others.
fn explained(
    snapshot: &Snapshot,
    attributes: &Attributes<'_>,
    defaulted: Option<Scope>,
    now: Timestamp,
) -> Result<(Vec<ExplainedSelector>, usize), CheckError> {
    let resolved = Resolved::unbounded(snapshot, attributes, defaulted, &|| now)?;
    let holds = holds(resolved.selected);
    let mut rules = of_subjects(snapshot, attributes, defaulted, &resolved);
    let mut others: Vec<(usize, ExplainedSelector)> = Vec::new();
    for rule in snapshot.with_selector() {
        let Some(selector) = rule.selector() else { continue };
        let mismatches: Vec<String> =
            selector.mismatches(attributes).map(|mismatch| mismatch.to_string()).collect();
        let applied = resolved.applied(rule);
        let why = match (applied, mismatches.is_empty(), rule.is_enabled()) {
            (_, false, _) => mismatches.join("; "),
            (Some(_), ..) => holds.clone(),
            (None, true, false) => "disabled: admits everything and counts nothing".to_owned(),
            (None, true, true) => STOPPED.to_owned(),
        };
        let mut explained = ExplainedSelector::new(rule, applied, why);
        explained.limit = limit::explain(snapshot, &explained.rule, attributes);
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
                let applied = resolved.applied(rule);
                let why = match (applied, index, rule.is_enabled()) {
                    (None, 0, true) => STOPPED,
                    (_, index, enabled) => why(matched.level, index == 0, enabled),
                };
                let mut explained =
                    ExplainedSelector::new(rule, applied, format!("{scope}: {why}"));
                explained.limit = limit::explain(snapshot, &explained.rule, attributes);
                rules.push(explained);
            }
        }
    }
    rules
}

impl ExplainedSelector {
    fn new(
        rule: &Arc<CompiledRule>,
        applied: Option<(&Arc<CompiledRule>, &str)>,
        why: String,
    ) -> Self {
        Self {
            rule: Arc::clone(applied.map_or(rule, |(rule, _)| rule)),
            applies: applied.is_some(),
            why,
            limit: None,
            subject: applied.map(|(_, subject)| subject.to_owned()),
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
