//! Which rules match a subject, and why.

use std::sync::Arc;

use headgate::Key;

use super::usage::{GetUsage, Standing};
use crate::{Catalog, CompiledRule, Level, Revision, Scope};

/// Says which rules match a subject, and why.
#[derive(Clone, Debug)]
pub struct Explain {
    catalog: Arc<Catalog>,
    usage: GetUsage,
}

/// Every rule that matches a subject.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// Which set of rules was looked at.
    pub revision: Revision,
    /// The rules, the closest first.
    pub rules: Vec<Explained>,
}

/// One rule that matches.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The rule.
    pub rule: Arc<CompiledRule>,
    /// How its pattern fits.
    pub level: Level,
    /// Whether it decides.
    pub applies: bool,
    /// Why, or why not.
    pub why: &'static str,
    /// How the subject stands under it, if it decides and something is used.
    pub standing: Option<Standing>,
}

impl Explain {
    /// Explains the rules of `catalog`.
    pub const fn new(catalog: Arc<Catalog>, usage: GetUsage) -> Self {
        Self { catalog, usage }
    }

    /// Every rule that matches `subject`; those that apply are decided together.
    pub async fn explain(&self, scope: Scope, subject: Key<'_>) -> Explanation {
        let snapshot = self.catalog.load();
        let mut rules = Vec::new();
        for (place, matched) in snapshot.levels(scope, subject.subject()).enumerate() {
            let closest = place == 0;
            for rule in matched.rules {
                let applies = closest && rule.is_enabled();
                let standing =
                    if applies { self.usage.standing(rule, scope, subject).await } else { None };
                let why = why(matched.level, closest, rule.is_enabled());
                let rule = Arc::clone(rule);
                rules.push(Explained { rule, level: matched.level, applies, why, standing });
            }
        }
        Explanation { revision: snapshot.revision(), rules }
    }
}

const fn why(level: Level, closest: bool, enabled: bool) -> &'static str {
    match (closest, enabled, level) {
        (false, ..) => "a closer pattern matches",
        (true, false, _) => "disabled: admits everything and counts nothing",
        (true, true, Level::Exact) => "the pattern is the identifier",
        (true, true, Level::Prefix) => "the pattern is the longest prefix of the identifier",
        (true, true, Level::Any) => "the pattern matches everybody, and none is closer",
        (true, true, Level::Default) => "no rule matches",
    }
}
