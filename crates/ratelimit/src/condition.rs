//! Conditions on attributes: what a rule's `when` says about one of them.

mod glob;
mod network;
mod parse;
mod regex;
mod test;

use serde_json::Value as Json;

pub(crate) use self::network::Network;
pub(crate) use self::regex::Regex;
use self::test::Test;
use crate::AttributeValue;

/// A condition on one attribute.
///
/// A missing attribute fulfils only `{"exists": false}`: in particular, it does not fulfil `not`
/// and `not_in`.
#[derive(Clone, Debug)]
pub struct Condition {
    /// As it was written.
    source: Json,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// The attribute is missing.
    Absent,
    /// The attribute is there, and all tests hold.
    Present(Box<[Test]>),
}

/// A key of the index of rules: a value fulfils the condition only if one of its keys fits.
#[derive(Clone, Copy, Debug)]
pub(crate) enum IndexKey<'a> {
    /// The value is this text.
    Equals(&'a str),
    /// The value begins with this text.
    Prefix(&'a str),
    /// The value ends with this text.
    Suffix(&'a str),
    /// The value is an address in this network.
    Network(Network),
}

// === impl Condition ===

impl Condition {
    /// Maximum number of items of a list.
    pub const MAX_ITEMS: usize = 256;

    /// Maximum length of a text in bytes.
    pub const MAX_TEXT_BYTES: usize = 512;

    /// Parses a condition; returns all errors, each with its place in the condition.
    pub fn parse(source: &Json) -> Result<Self, Vec<String>> {
        let kind = parse::condition(source)?;
        Ok(Self { source: source.clone(), kind })
    }

    /// Returns the condition as it was written.
    pub const fn source(&self) -> &Json {
        &self.source
    }

    /// Returns `true` if a value, or its absence, fulfils the condition.
    pub fn holds(&self, value: Option<&AttributeValue<'_>>) -> bool {
        match (&self.kind, value) {
            (Kind::Absent, value) => value.is_none(),
            (Kind::Present(_), None) => false,
            (Kind::Present(tests), Some(value)) => tests.iter().all(|test| test.holds(value)),
        }
    }

    /// Returns `true` if it compares with ranges of addresses.
    pub(crate) fn has_networks(&self) -> bool {
        match &self.kind {
            Kind::Absent => false,
            Kind::Present(tests) => tests.iter().any(Test::has_networks),
        }
    }

    /// Returns the regular expressions.
    pub(crate) fn regexes(&self) -> impl Iterator<Item = &Regex> {
        let tests = match &self.kind {
            Kind::Absent => &[],
            Kind::Present(tests) => &**tests,
        };
        tests.iter().flat_map(Test::regexes)
    }

    /// Returns `true` if the attribute must be there.
    pub(crate) const fn needs_value(&self) -> bool {
        matches!(self.kind, Kind::Present(_))
    }

    /// Returns sets of index keys. In each of them, one key fits every value that fulfils the
    /// condition.
    pub(crate) fn index_keys(&self) -> impl Iterator<Item = Vec<IndexKey<'_>>> {
        let tests = match &self.kind {
            Kind::Absent => &[],
            Kind::Present(tests) => &**tests,
        };
        tests.iter().filter_map(Test::index_keys)
    }

    /// Returns the only texts that may fulfil the condition, if they are listed.
    pub(crate) fn literals(&self) -> Option<&[Box<str>]> {
        match &self.kind {
            Kind::Absent => None,
            Kind::Present(tests) => tests.iter().find_map(Test::literals),
        }
    }

    /// Returns `true` if it is known that no value fulfils the condition. Lists are not considered:
    /// each of their items may fulfil another part.
    pub(crate) fn is_contradictory(&self) -> bool {
        let holds = |text: &str| self.holds(Some(&AttributeValue::from(text)));
        self.literals().is_some_and(|texts| !texts.iter().any(|text| holds(text)))
    }

    /// Returns `true` if it is known that every single text that fulfils `other` fulfils this
    /// condition.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        if self.source == other.source {
            return true;
        }
        let (Kind::Present(tests), Kind::Present(others)) = (&self.kind, &other.kind) else {
            return false;
        };
        if let Some(texts) = other.literals() {
            return texts.iter().all(|text| self.holds(Some(&AttributeValue::from(&**text))));
        }
        tests.iter().all(|test| others.iter().any(|other| test.covers(other)))
    }

    /// Returns `true` if the values that fulfil the condition are listed.
    pub(crate) fn is_listed(&self) -> bool {
        self.literals().is_some()
    }
}

/// Conditions are equal if they are written alike.
impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for Condition {}

#[cfg(test)]
mod tests;
