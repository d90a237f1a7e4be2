//! One limit in the fields of the draft.

use std::{borrow::Cow, fmt::Write as _, sync::Arc};

use headgate::{Decision, Limit, Outcome, decision::ceil_secs};
use headgate_ratelimit::{CompiledRule, KeyedAlgorithm, keyed::KeyedLimit};

use crate::rest::text_buffer::Push;

/// A limit and its name.
pub(super) struct Policy<'a> {
    limit: &'a Limit,
    window_seconds: u64,
    /// The name as a quoted string.
    name: Cow<'a, str>,
    /// The item of `RateLimit-Policy`, rendered when the rule was compiled.
    text: Option<&'a str>,
}

/// Maximum length of a quoted name that is written without an allocation.
const SHORT_BYTES: usize = 64;

impl<'a> Policy<'a> {
    /// The policy of a rule that decided alone.
    pub(super) fn of_rule(rule: &'a CompiledRule) -> Self {
        let text = rule.label(label);
        // Only the name contains quotes.
        let name = text.rfind('"').map_or(text, |end| &text[..=end]);
        Self {
            limit: rule.limit(),
            window_seconds: rule.window_seconds().into(),
            name: name.into(),
            text: Some(text),
        }
    }

    /// The policy of one of several rules. Rules with the same name have their windows appended.
    pub(super) fn among(rule: &'a CompiledRule, stack: &'a [(Arc<CompiledRule>, Outcome)]) -> Self {
        let alone = Self::of_rule(rule);
        let same = stack.iter().filter(|(other, _)| Self::of_rule(other).name == alone.name);
        if same.count() < 2 {
            return alone;
        }
        let bare = alone.name.strip_suffix('"').unwrap_or(&alone.name);
        let name = format!("{bare}:{}s\"", alone.window_seconds).into();
        Self { name, text: None, ..alone }
    }

    /// The policy of a limit by key, named after its algorithm.
    pub(super) fn of_key(algorithm: KeyedAlgorithm, limit: &'a KeyedLimit) -> Self {
        let name = match algorithm {
            KeyedAlgorithm::TokenBucket => "\"token_bucket\"",
            KeyedAlgorithm::SlidingWindow => "\"sliding_window\"",
            KeyedAlgorithm::SlidingWindowCounter => "\"sliding_window_counter\"",
            KeyedAlgorithm::FixedWindow => "\"fixed_window\"",
            KeyedAlgorithm::LeakyBucket => "\"leaky_bucket\"",
        };
        let window_seconds = limit.window_seconds();
        Self { limit: limit.limit(), window_seconds, name: name.into(), text: None }
    }

    /// Returns the rendered item of `RateLimit-Policy`, if there is one.
    pub(super) fn text(&self, decision: &Decision) -> Option<&'a str> {
        // A fail mode may apply only a share of the limit.
        self.text.filter(|_| decision.limit == self.limit.capacity())
    }

    /// Returns true if the name has a usual length.
    pub(super) fn is_short(&self) -> bool {
        self.name.len() <= SHORT_BYTES
    }

    /// Writes the item of `RateLimit-Policy`.
    pub(super) fn push(&self, out: &mut impl Push, decision: &Decision) {
        out.push_text(&self.name);
        push_parameters(out, [(";q=", decision.limit), (";w=", self.window_seconds)]);
    }

    /// Writes the item of `RateLimit`.
    pub(super) fn push_standing(&self, out: &mut impl Push, decision: &Decision) {
        out.push_text(&self.name);
        push_parameters(out, [(";r=", decision.remaining)]);
        if let Some(more) = self.limit.more_after(decision) {
            // Rounded as `Retry-After` is, which is at least 1.
            push_parameters(out, [(";t=", ceil_secs(more).max(1))]);
        }
    }
}

fn push_parameters<const N: usize>(out: &mut impl Push, parameters: [(&str, u64); N]) {
    for (name, value) in parameters {
        out.push_text(name);
        out.push_number(value);
    }
}

/// The item of `RateLimit-Policy` for a rule: its name for people, its limit and its window.
fn label(rule: &CompiledRule) -> Box<str> {
    let name = rule.rule().map_or(Cow::Borrowed("default"), |rule| rule.display_name().into());
    let mut text = match (quoted(&name), rule.id()) {
        (Some(quoted), _) => quoted,
        // A structured field's string has no letters beyond ASCII.
        (None, Some(id)) => format!("\"{id}\""),
        (None, None) => "\"rule\"".to_owned(),
    };
    let _ = write!(text, ";q={};w={}", rule.limit().capacity(), rule.window_seconds());
    text.into()
}

/// A string of RFC 9651, if `text` can be one.
fn quoted(text: &str) -> Option<String> {
    if !text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return None;
    }
    Some(format!("\"{}\"", text.replace('\\', r"\\").replace('"', r#"\""#)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_as_structured_fields_have_it() {
        assert_eq!(quoted("per minute").as_deref(), Some(r#""per minute""#));
        assert_eq!(quoted(r#"a "b" \c"#).as_deref(), Some(r#""a \"b\" \\c""#));
        assert_eq!(quoted("標準"), None);
        assert_eq!(quoted("a\tb"), None);
    }
}
