use super::ManageError;
use crate::{Draft, FieldError, RuleSpec, selector::RegexBudget};

/// Rules to apply together, validated one by one as they are added: a draft needs several times
/// the memory of a rule.
#[derive(Debug)]
pub struct RuleList {
    specs: Vec<RuleSpec>,
    regexes: RegexBudget,
    added: usize,
    /// Indexes of invalid rules, and errors.
    invalid: Vec<(usize, FieldError)>,
    is_refused: bool,
}

/// Number of invalid fields after which the rest of a list is not validated.
const MAX_INVALID: usize = 1000;

/// The same for conditions. Each regular expression is compiled before it is refused, which could
/// take minutes.
const MAX_INVALID_CONDITIONS: usize = 100;

impl RuleList {
    /// Creates an empty list; its regular expressions need memory besides those in `regexes`.
    pub(super) const fn new(regexes: RegexBudget) -> Self {
        Self { specs: Vec::new(), regexes, added: 0, invalid: Vec::new(), is_refused: false }
    }

    /// Validates and adds a rule. All errors are reported at once, at the end; many errors, and
    /// regular expressions that need too much memory, end the validation early.
    pub fn add(&mut self, draft: Draft) {
        let index = self.added;
        self.added += 1;
        if self.is_refused {
            return;
        }
        match draft.validate(None) {
            Ok(spec) => match self.regexes.add(&spec) {
                // An invalid list is not applied: only its errors are of interest.
                Ok(()) if self.invalid.is_empty() => self.specs.push(spec),
                Ok(()) => {}
                Err(error) => {
                    self.invalid.push((index, error));
                    self.is_refused = true;
                }
            },
            Err(errors) => {
                self.specs = Vec::new();
                self.invalid.extend(errors.into_iter().map(|error| (index, error)));
                self.is_refused = self.invalid.len() >= MAX_INVALID
                    || self.invalid_conditions() >= MAX_INVALID_CONDITIONS;
            }
        }
    }

    fn invalid_conditions(&self) -> usize {
        self.invalid.iter().filter(|(_, error)| error.field == "when").count()
    }

    /// Returns the rules, if all are valid.
    pub(super) fn finish(self) -> Result<Vec<RuleSpec>, ManageError> {
        if self.invalid.is_empty() {
            Ok(self.specs)
        } else {
            Err(ManageError::InvalidAt(self.invalid))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Input, SelectorDraft};

    /// Number of errors, and the index of the last one.
    fn errors(draft: &Draft, rules: usize) -> (usize, usize) {
        let mut list = RuleList::new(RegexBudget::default());
        for _ in 0..rules {
            list.add(draft.clone());
        }
        let Err(ManageError::InvalidAt(invalid)) = list.finish() else { panic!("invalid") };
        (invalid.len(), invalid.last().unwrap().0)
    }

    #[test]
    fn a_list_of_invalid_conditions_is_not_validated_to_its_end() {
        let when = serde_json::json!({"a": {"regex": "("}, "b": {"regex": ")"}});
        let selector = SelectorDraft { when: Input::Given(when), ..SelectorDraft::default() };
        let draft = Draft { selector, ..Draft::default() };
        let (_, last) = errors(&draft, 10_000);
        assert_eq!(last, MAX_INVALID_CONDITIONS / 2 - 1);
    }

    #[test]
    fn errors_of_a_list_are_bounded() {
        let (of_one, _) = errors(&Draft::default(), 1);
        let (all, _) = errors(&Draft::default(), 10_000);
        assert!((MAX_INVALID..MAX_INVALID + of_one).contains(&all), "{all}");
    }
}
