/// A value with wildcards: each `*` stands for any text, also none.
#[derive(Debug)]
pub(super) struct Pattern {
    first: String,
    /// What stands between wildcards, in order.
    middle: Vec<String>,
    last: String,
}

impl Pattern {
    /// The pattern that `value` is; `None` if it has no wildcard.
    pub(super) fn new(value: &str) -> Option<Self> {
        let (first, rest) = value.split_once('*')?;
        let (middle, last) = match rest.rsplit_once('*') {
            Some((middle, last)) => (middle.split('*').map(str::to_owned).collect(), last),
            None => (Vec::new(), rest),
        };
        Some(Self { first: first.to_owned(), middle, last: last.to_owned() })
    }

    pub(super) fn matches(&self, value: &str) -> bool {
        let inner = value.strip_prefix(&self.first).and_then(|rest| rest.strip_suffix(&self.last));
        let Some(mut rest) = inner else {
            return false;
        };
        // The earliest place of each part leaves the most room for those that follow.
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
    fn a_wildcard_stands_for_any_text_wherever_it_is() {
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
    fn what_stands_around_wildcards_must_be_there_in_order_and_without_overlap() {
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
    fn a_value_without_a_wildcard_is_no_pattern() {
        assert!(Pattern::new("plain").is_none());
        assert!(Pattern::new("").is_none());
    }
}
