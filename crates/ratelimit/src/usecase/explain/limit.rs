//! Explains the limit of a rule that has several.

use crate::{Attributes, CompiledRule, LimitSource, PlanLimits, RuleOverride, Selector, Snapshot};

/// Reason for the limit that a check has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedLimit {
    /// The reason.
    pub why: String,
    /// The override, if the limit is that of one.
    pub overridden: Option<RuleOverride>,
}

/// Returns the reason for the limit of `rule`; `None` if the rule has no other.
pub(in crate::usecase) fn explain(
    snapshot: &Snapshot,
    rule: &CompiledRule,
    attributes: &Attributes<'_>,
) -> Option<ExplainedLimit> {
    let limits = rule.selector().and_then(Selector::limits);
    let units = rule.units();
    let why = match (rule.source(), limits) {
        (LimitSource::Override(id), _) => {
            let found = snapshot.override_of(id);
            let subject = found.map(|found| found.spec.subject.to_string()).unwrap_or_default();
            let why = format!("an override of {subject} sets the limit to {units}");
            return Some(ExplainedLimit { why, overridden: found.cloned() });
        }
        (LimitSource::Plan, Some(limits)) => {
            format!("the limit is {units} by the value of {}", limits.by())
        }
        (_, Some(limits)) => unlisted(limits, attributes),
        (_, None) => return None,
    };
    Some(ExplainedLimit { why, overridden: None })
}

/// Explains the limit of a check whose plan has none.
fn unlisted(limits: &PlanLimits, attributes: &Attributes<'_>) -> String {
    let (by, units) = (limits.by(), limits.fallback());
    let which = if limits.default().is_some() {
        format!("the default limit, {units}")
    } else {
        format!("the lowest limit, {units}, because the rule has no default")
    };
    if attributes.get(by).is_some() {
        format!("the rule has no limit for this value of {by}: it has {which}")
    } else {
        format!("the check has no attribute {by}: it has {which}")
    }
}
