//! Explains which rules match a subject.

pub(super) mod limit;

use std::sync::Arc;

use headgate::{Grant, Key};

pub use self::limit::ExplainedLimit;
use super::usage::{GetUsage, SubjectUsage};
use crate::{Attributes, Catalog, CompiledRule, Level, Revision, Scope};

/// Explains which rules match a subject and which decide.
#[derive(Clone)]
pub struct Explain {
    pub(super) catalog: Arc<Catalog>,
    pub(super) usage: GetUsage,
    held: Arc<HeldUnits>,
}

/// Returns what this server took in advance of a subject's limit, and until when it may hold it.
pub type HeldUnits = dyn Fn(Key<'_>) -> Option<Grant> + Send + Sync;

/// The rules that match a subject.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// Revision of the rules.
    pub revision: Revision,
    /// The rules, closest first.
    pub rules: Vec<ExplainedRule>,
}

/// A matching rule.
#[derive(Clone, Debug)]
pub struct ExplainedRule {
    /// The rule, with the limit of the subject.
    pub rule: Arc<CompiledRule>,
    /// Level at which its pattern matches.
    pub level: Level,
    /// `true` if it decides.
    pub applies: bool,
    /// Reason why it decides or not.
    pub why: &'static str,
    /// Reason for its limit, unless it is the rule's only one.
    pub limit: Option<ExplainedLimit>,
    /// Usage of the subject, if the rule decides and the subject has used anything.
    pub usage: Option<SubjectUsage>,
    /// Units that this server took in advance, if the rule decides.
    pub held: Option<Grant>,
}

impl Explain {
    /// Creates the use case on the rules of `catalog`.
    pub const fn new(catalog: Arc<Catalog>, usage: GetUsage, held: Arc<HeldUnits>) -> Self {
        Self { catalog, usage, held }
    }

    /// Returns all rules that match `subject`. Those that apply must all admit a check.
    pub async fn explain(&self, scope: Scope, subject: Key<'_>) -> Explanation {
        let snapshot = self.catalog.load();
        let mut attributes = Attributes::default();
        // Cannot fail: a subject is shorter than an attribute may be.
        let _ = attributes.insert(scope.name(), subject.subject());
        let mut rules = Vec::new();
        for (index, matched) in snapshot.levels(scope, subject.subject()).enumerate() {
            let closest = index == 0;
            for rule in matched.rules {
                let applies = closest && rule.is_enabled();
                let rule = snapshot.with_limit_for(rule, &attributes, || self.catalog.now());
                let limit = limit::explain(&snapshot, rule, &attributes);
                let usage =
                    if applies { self.usage.of_subject(rule, scope, subject).await } else { None };
                let space = rule.space(scope);
                let held = if applies { (self.held)(subject.within(&space)) } else { None };
                let why = why(matched.level, closest, rule.is_enabled());
                let (rule, level) = (Arc::clone(rule), matched.level);
                rules.push(ExplainedRule { rule, level, applies, why, limit, usage, held });
            }
        }
        Explanation { revision: snapshot.revision(), rules }
    }
}

impl std::fmt::Debug for Explain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Explain").finish_non_exhaustive()
    }
}

pub(super) const fn why(level: Level, closest: bool, enabled: bool) -> &'static str {
    match (closest, enabled, level) {
        (false, ..) => "a closer pattern matches",
        (true, false, _) => "disabled: admits everything and counts nothing",
        (true, true, Level::Exact) => "the pattern is the identifier",
        (true, true, Level::Prefix) => "the pattern is the longest prefix of the identifier",
        (true, true, Level::Any) => "the pattern matches all identifiers, and no closer one exists",
        (true, true, Level::Default) => "no rule matches",
    }
}
