//! One test of a value.

use std::net::IpAddr;

use super::{IndexKey, glob::Glob, network::Network, regex::Regex};
use crate::AttributeValue;

/// A test of a value that is there. On a list, a test holds if it holds for one item; the negative
/// ones hold if they hold for all.
#[derive(Clone, Debug)]
pub(super) enum Test {
    /// The text is one of these, or matches one of the globs.
    Texts { literals: Box<[Box<str>]>, globs: Box<[Glob]> },
    /// The text is an address in one of these networks.
    In(Box<[Network]>),
    /// The text is an address, and in none of these networks.
    NotIn(Box<[Network]>),
    /// The text is a number within these bounds.
    Range { min: Option<f64>, max: Option<f64> },
    /// The regular expression matches the whole text.
    Regex(Regex),
    /// The attribute is there, with any value.
    Exists,
    /// One of these tests does not hold.
    Not(Box<[Test]>),
}

// === impl Test ===

impl Test {
    pub(super) fn holds(&self, value: &AttributeValue<'_>) -> bool {
        match self {
            Self::NotIn(networks) => value
                .texts()
                .all(|text| text.parse().is_ok_and(|address| !contains(networks, address))),
            Self::Not(tests) => !tests.iter().all(|test| test.holds(value)),
            Self::Exists => true,
            positive => value.texts().any(|text| positive.holds_for(text)),
        }
    }

    fn holds_for(&self, text: &str) -> bool {
        match self {
            Self::Texts { literals, globs } => {
                let literal = match &**literals {
                    [one] => **one == *text,
                    several => several.binary_search_by(|other| (**other).cmp(text)).is_ok(),
                };
                literal || globs.iter().any(|glob| glob.matches(text))
            }
            Self::In(networks) => text.parse().is_ok_and(|address| contains(networks, address)),
            Self::Range { min, max } => number(text).is_some_and(|number| {
                min.is_none_or(|min| number >= min) && max.is_none_or(|max| number <= max)
            }),
            Self::Regex(regex) => regex.matches(text),
            Self::NotIn(_) | Self::Not(_) | Self::Exists => true,
        }
    }

    /// Returns index keys of which one fits every value that passes; `None` if there are none.
    pub(super) fn index_keys(&self) -> Option<Vec<IndexKey<'_>>> {
        match self {
            Self::Texts { literals, globs } => {
                let literals = literals.iter().map(|literal| Some(IndexKey::Equals(literal)));
                literals.chain(globs.iter().map(glob_key)).collect()
            }
            Self::In(networks) => Some(networks.iter().copied().map(IndexKey::Network).collect()),
            _ => None,
        }
    }

    /// Returns `true` for a test of addresses.
    pub(super) fn has_networks(&self) -> bool {
        match self {
            Self::In(_) | Self::NotIn(_) => true,
            Self::Not(tests) => tests.iter().any(Self::has_networks),
            _ => false,
        }
    }

    /// Returns the regular expressions. Those within `Not` are not negated again.
    pub(super) fn regexes(&self) -> impl Iterator<Item = &Regex> {
        let tests = match self {
            Self::Not(tests) => &**tests,
            other => std::slice::from_ref(other),
        };
        tests.iter().filter_map(|test| match test {
            Self::Regex(regex) => Some(regex),
            _ => None,
        })
    }

    /// Returns the only texts that pass, if they are listed.
    pub(super) fn literals(&self) -> Option<&[Box<str>]> {
        match self {
            Self::Texts { literals, globs } if globs.is_empty() => Some(literals),
            _ => None,
        }
    }

    /// Returns `true` if it is known that every text that passes `other` passes this test.
    pub(super) fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exists, _) => true,
            (Self::Texts { globs, .. }, Self::Texts { literals, globs: others }) => {
                literals.iter().all(|literal| self.holds_for(literal))
                    && others.iter().all(|other| {
                        globs.iter().any(|glob| {
                            // A prefix or suffix covers longer ones.
                            let wide = Glob::around(glob.prefix(), glob.suffix());
                            *glob == *other
                                || (*glob == wide
                                    && other.prefix().starts_with(glob.prefix())
                                    && other.suffix().ends_with(glob.suffix()))
                        })
                    })
            }
            (Self::In(networks), Self::In(others)) => {
                others.iter().all(|other| networks.iter().any(|network| network.covers(other)))
            }
            (Self::Range { min, max }, Self::Range { min: low, max: high }) => {
                min.is_none_or(|min| low.is_some_and(|low| low >= min))
                    && max.is_none_or(|max| high.is_some_and(|high| high <= max))
            }
            _ => false,
        }
    }
}

fn contains(networks: &[Network], address: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(address))
}

/// The finite number that a text is.
fn number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|number| number.is_finite())
}

fn glob_key(glob: &Glob) -> Option<IndexKey<'_>> {
    match (glob.prefix(), glob.suffix()) {
        ("", "") => None,
        ("", suffix) => Some(IndexKey::Suffix(suffix)),
        (prefix, _) => Some(IndexKey::Prefix(prefix)),
    }
}
