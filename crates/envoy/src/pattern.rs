/// A value with wildcards: each `*` matches any text, also an empty one.
#[derive(Debug)]
pub(crate) struct Pattern {
    first: String,
    /// The parts between wildcards, in order.
    middle: Vec<String>,
    last: String,
}

impl Pattern {
    /// Returns the pattern of `value`; `None` if it has no wildcard.
    pub(crate) fn new(value: &str) -> Option<Self> {
        let (first, rest) = value.split_once('*')?;
        let (middle, last) = match rest.rsplit_once('*') {
            Some((middle, last)) => (middle.split('*').map(str::to_owned).collect(), last),
            None => (Vec::new(), rest),
        };
        Some(Self { first: first.to_owned(), middle, last: last.to_owned() })
    }

    pub(crate) fn matches(&self, value: &str) -> bool {
        let inner = value.strip_prefix(&self.first).and_then(|rest| rest.strip_suffix(&self.last));
        let Some(mut rest) = inner else {
            return false;
        };
        // Matching each part at its earliest position leaves the most room for the next ones.
        self.middle.iter().all(|part| match rest.split_once(part.as_str()) {
            Some((_, after)) => {
                rest = after;
                true
            }
            None => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, value: &str) -> bool {
        Pattern::new(pattern).unwrap().matches(value)
    }

    #[test]
    fn a_wildcard_matches_any_text_at_any_position() {
        for (pattern, value) in [
            ("*", ""),
            ("*", "anything"),
            ("/files/*", "/files/"),
            ("*.example.com", "a.b.example.com"),
            ("/v1/*/action", "/v1/7/action"),
            ("/v1/*/action", "/v1//action"),
            ("/v1/*/action", "/v1/a/action/action"),
            ("/a/*/b/*/c", "/a/1/b/2/c"),
            ("/a/*/b/*/c", "/a/b/1/b/2/c"),
            ("a**b", "ab"),
        ] {
            assert!(matches(pattern, value), "{pattern} {value}");
        }
    }

    #[test]
    fn parts_around_wildcards_match_in_order_without_overlap() {
        for (pattern, value) in [
            ("/files/*", "/file"),
            ("*.example.com", "example.com"),
            ("/v1/*/action", "/v1/action"),
            ("/v1/*/action", "/v1/7/other"),
            ("/a/*/b/*/c", "/a/1/c"),
            ("*b*a*", "ab"),
            ("aba*aba", "ababa"),
            ("a*b*b", "ab"),
        ] {
            assert!(!matches(pattern, value), "{pattern} {value}");
        }
    }

    #[test]
    fn a_value_without_a_wildcard_is_not_a_pattern() {
        assert!(Pattern::new("plain").is_none());
        assert!(Pattern::new("").is_none());
    }
}
