//! Regular expressions with bounded size and linear time.

mod shared;

use std::sync::Arc;

use regex_automata::{
    Anchored, Input, MatchKind,
    dfa::{Automaton as _, StartKind, dense},
    nfa::thompson,
    util::syntax,
};

/// A regular expression that must match a whole text. It is compiled to a deterministic automaton:
/// one step for each byte, and no memory while it runs. Equal expressions share their automaton.
#[derive(Clone, Debug)]
pub(crate) struct Regex(Arc<Automaton>);

type Automaton = dense::DFA<Vec<u32>>;

impl Regex {
    /// Maximum length of an expression in bytes.
    pub(crate) const MAX_BYTES: usize = 256;

    /// Maximum size of a compiled expression in bytes.
    const MAX_COMPILED_BYTES: usize = 64 * 1024;

    /// Compiles an expression. Classes such as `\w` are those of ASCII.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > Self::MAX_BYTES {
            return Err(format!("must be at most {} bytes long", Self::MAX_BYTES));
        }
        // Rules are read again with every list of rules, and compiling takes milliseconds.
        shared::find_or_compile(text, || Self::compile(text)).map(Self)
    }

    fn compile(text: &str) -> Result<Automaton, String> {
        let config = dense::Config::new()
            // The first alternative that matches may be shorter than the text.
            .match_kind(MatchKind::All)
            .start_kind(StartKind::Anchored)
            .dfa_size_limit(Some(Self::MAX_COMPILED_BYTES))
            .determinize_size_limit(Some(4 * Self::MAX_COMPILED_BYTES));
        // Bytes instead of characters: automata of Unicode classes are too large.
        let syntax = syntax::Config::new().unicode(false).utf8(false);
        let nfa =
            thompson::Config::new().utf8(false).nfa_size_limit(Some(4 * Self::MAX_COMPILED_BYTES));
        let builder = dense::Builder::new().configure(config).syntax(syntax).thompson(nfa).clone();
        builder.build(text).map_err(|error| {
            let text = one_line(&error);
            // Errors of the smaller automaton before it have no kind.
            if error.is_size_limit_exceeded() || text.contains("exceeded limit") {
                return "is too complex: make repetitions shorter, or use several rules".to_owned();
            }
            format!("is not a regular expression: {text}")
        })
    }

    /// Returns the address of the automaton, equal for equal expressions, and its size in bytes.
    pub(crate) fn automaton(&self) -> (usize, usize) {
        (Arc::as_ptr(&self.0).addr(), self.0.memory_usage())
    }

    /// Returns `true` if the expression matches the whole `text`.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let input = Input::new(text).anchored(Anchored::Yes);
        let Ok(mut state) = self.0.start_state_forward(&input) else { return false };
        for byte in text.bytes() {
            state = self.0.next_state(state, byte);
            if self.0.is_dead_state(state) || self.0.is_quit_state(state) {
                return false;
            }
        }
        // Matches are known one step later, after the end of the text.
        self.0.is_match_state(self.0.next_eoi_state(state))
    }
}

fn one_line(error: &dyn std::error::Error) -> String {
    let source = error.source().map_or_else(|| error.to_string(), one_line);
    source.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_whole_texts() {
        for (regex, matching, others) in [
            ("a|ab", &["a", "ab"][..], &["abc", "", "xa"][..]),
            (r"/v\d+/[a-z]*", &["/v1/", "/v20/abc"], &["/v/", "/v1/A"]),
            ("(?i)get", &["GET", "get"], &["gets"]),
            (".*é.*", &["é", "aéb"], &["e"]),
            ("^a$", &["a"], &["b"]),
            ("", &[""], &["a"]),
        ] {
            let parsed = Regex::parse(regex).unwrap();
            for text in matching {
                assert!(parsed.matches(text), "{regex} {text}");
            }
            for text in others {
                assert!(!parsed.matches(text), "{regex} {text}");
            }
        }
    }

    #[test]
    fn equal_expressions_share_their_automaton() {
        let parse = |text| Regex::parse(text).unwrap();
        let (one, same, other) = (parse("a+b"), parse("a+b"), parse("a+c"));
        assert_eq!(one.automaton(), same.automaton());
        assert_ne!(one.automaton().0, other.automaton().0);
        assert!(one.automaton().1 > 0);
    }

    #[test]
    fn refuses_what_is_invalid_or_too_large() {
        assert!(Regex::parse("(").unwrap_err().starts_with("is not a regular expression"));
        assert!(Regex::parse(")(").unwrap_err().starts_with("is not a regular expression"));
        assert!(Regex::parse(&"a".repeat(257)).unwrap_err().contains("256"));
        assert!(Regex::parse("(a|b)*a(a|b){12}").unwrap_err().starts_with("is too complex"));
        assert!(Regex::parse("((a{100}){100}){100}").unwrap_err().starts_with("is too complex"));
    }
}
