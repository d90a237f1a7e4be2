//! A bound on the memory of all regular expressions.

use std::collections::HashSet;

use headgate_admin::FieldError;

use crate::RuleSpec;

/// The memory of the compiled regular expressions of rules; equal ones count once.
#[derive(Debug, Default)]
pub(crate) struct RegexBudget {
    automata: HashSet<usize>,
    bytes: usize,
}

impl RegexBudget {
    /// Maximum size of the compiled regular expressions of all rules in bytes. It also bounds the
    /// time to compile them, since the largest take longest.
    const MAX_BYTES: usize = 64 * 1024 * 1024;

    /// Counts rules that exist. They may exceed the maximum: other versions may have written them.
    pub(crate) fn with<'r>(existing: impl IntoIterator<Item = &'r RuleSpec>) -> Self {
        let mut budget = Self::default();
        for spec in existing {
            budget.count(spec);
        }
        budget
    }

    /// Counts a rule that is to be written.
    pub(crate) fn add(&mut self, spec: &RuleSpec) -> Result<(), FieldError> {
        self.add_within(spec, Self::MAX_BYTES)
    }

    fn add_within(&mut self, spec: &RuleSpec, max: usize) -> Result<(), FieldError> {
        if self.count(spec) == 0 || self.bytes <= max {
            return Ok(());
        }
        let message = format!(
            "the regular expressions of all rules would need more than {} MiB compiled: make them \
             simpler, share them between rules, or use globs",
            Self::MAX_BYTES / (1024 * 1024)
        );
        Err(FieldError { field: "when", reason: "too_complex", message })
    }

    /// Returns the additional bytes.
    fn count(&mut self, spec: &RuleSpec) -> usize {
        let before = self.bytes;
        for regex in spec.selector.iter().flat_map(|selector| selector.regexes()) {
            let (automaton, bytes) = regex.automaton();
            if self.automata.insert(automaton) {
                self.bytes += bytes;
            }
        }
        self.bytes - before
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Draft, SelectorDraft};

    fn rule(regexes: &[&str]) -> RuleSpec {
        let when = regexes.iter().enumerate().map(|(i, regex)| {
            let condition = if i % 2 == 0 {
                json!({ "regex": regex })
            } else {
                json!({ "exists": true, "not": { "regex": regex } })
            };
            (format!("a{i}"), condition)
        });
        let when = serde_json::Value::Object(when.collect());
        let draft = Draft {
            name: "r".to_owned().into(),
            limit: 1.into(),
            window_seconds: 60.into(),
            selector: SelectorDraft { when: when.into(), ..SelectorDraft::default() },
            ..Draft::default()
        };
        draft.validate(None).unwrap()
    }

    #[test]
    fn counts_equal_expressions_once() {
        let rules = [rule(&["a+", "b+"]), rule(&["b+", "c+"]), rule(&["a+"]), rule(&[])];
        let mut budget = RegexBudget::default();
        assert!(budget.count(&rules[0]) > budget.count(&rules[1]));
        assert_eq!((budget.count(&rules[2]), budget.count(&rules[3])), (0, 0));
        assert_eq!(budget.automata.len(), 3);
    }

    #[test]
    fn refuses_more_than_the_maximum_but_keeps_what_exists() {
        let (known, new) = (rule(&["d+"]), rule(&["e+"]));
        let mut budget = RegexBudget::with([&known]);
        let max = budget.bytes - 1;
        assert_eq!(budget.add_within(&known, max), Ok(()));
        assert_eq!(budget.add_within(&rule(&[]), max), Ok(()));
        assert_eq!(budget.add_within(&new, max).unwrap_err().reason, "too_complex");
    }
}
