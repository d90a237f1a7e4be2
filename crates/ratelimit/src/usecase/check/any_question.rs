//! Checks of either kind, for several at once.

use std::borrow::Cow;

use headgate::Cost;

use super::{AttributesQuestion, CheckError, CheckRateLimit, Question, Resolved};
use crate::{Attributes, Scope, Snapshot};

/// A check of a subject, or with attributes.
#[derive(Clone, Debug)]
pub enum AnyQuestion<'a> {
    /// A check of a subject.
    Subject(Question<'a>),
    /// A check with attributes.
    Attributes(Box<AttributesQuestion<'a>>),
}

impl<'a> AnyQuestion<'a> {
    /// Returns the units to consume.
    pub const fn cost(&self) -> Cost {
        match self {
            Self::Subject(question) => question.cost,
            Self::Attributes(question) => question.cost,
        }
    }

    /// Returns the scope whose subject has the default limit if no rule matches.
    pub(super) const fn defaulted(&self) -> Option<Scope> {
        match self {
            Self::Subject(question) => Some(question.scope),
            Self::Attributes(question) => question.defaulted,
        }
    }

    /// Returns the attributes, if rules over attributes may apply.
    pub(super) fn attributes_for(&self, snapshot: &Snapshot) -> Cow<'_, Attributes<'a>> {
        match self {
            Self::Subject(question) => Cow::Owned(question.attributes_for(snapshot)),
            Self::Attributes(question) => Cow::Borrowed(&question.attributes),
        }
    }
}

impl<'a> From<Question<'a>> for AnyQuestion<'a> {
    fn from(question: Question<'a>) -> Self {
        Self::Subject(question)
    }
}

impl<'a> From<AttributesQuestion<'a>> for AnyQuestion<'a> {
    fn from(question: AttributesQuestion<'a>) -> Self {
        Self::Attributes(Box::new(question))
    }
}

impl CheckRateLimit {
    /// Returns the limits that must admit a check; `attributes` are its own, for this snapshot.
    pub(super) fn resolve<'s>(
        &self,
        snapshot: &'s Snapshot,
        question: &'s AnyQuestion<'_>,
        attributes: &'s Attributes<'_>,
    ) -> Result<Resolved<'s, 's>, CheckError> {
        match question {
            AnyQuestion::Subject(one) if !one.needs_selectors(snapshot) => {
                let stack = self.stack(snapshot, one)?;
                let first = stack.first().map(|rule| Ok(*rule));
                let matched = first.unwrap_or_else(|| one.representative(snapshot))?;
                Ok(Resolved::of_stack(&stack, one, matched))
            }
            _ => Resolved::new(snapshot, attributes, question.defaulted(), &|| self.catalog.now()),
        }
    }
}
