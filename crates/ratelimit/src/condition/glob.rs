//! Texts with wildcards.

/// A text in which each `*` stands for any characters, also none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Glob {
    prefix: Box<str>,
    middles: Box<[Box<str>]>,
    suffix: Box<str>,
}

impl Glob {
    /// The glob of a text that contains a `*`; `None` if it contains none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (prefix, rest) = text.split_once('*')?;
        let (middles, suffix) = rest.rsplit_once('*').unwrap_or(("", rest));
        let middles = middles.split('*').filter(|middle| !middle.is_empty());
        Some(Self {
            prefix: prefix.into(),
            middles: middles.map(Into::into).collect(),
            suffix: suffix.into(),
        })
    }

    /// Texts that begin with `prefix` and end with `suffix`.
    pub(crate) fn around(prefix: &str, suffix: &str) -> Self {
        Self { prefix: prefix.into(), middles: Box::default(), suffix: suffix.into() }
    }

    /// Returns `true` if the glob matches `text`, in time linear in its length.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let inner =
            text.strip_prefix(&*self.prefix).and_then(|rest| rest.strip_suffix(&*self.suffix));
        let Some(mut inner) = inner else { return false };
        // The first occurrence of each part leaves the most text for the others.
        self.middles.iter().all(|middle| {
            let found = inner.split_once(&**middle);
            inner = found.map_or(inner, |(_, rest)| rest);
            found.is_some()
        })
    }

    /// Returns the text before the first wildcard.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns the text after the last wildcard.
    pub(crate) fn suffix(&self) -> &str {
        &self.suffix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_match_any_characters_anywhere() {
        for (glob, matching, others) in [
            ("*", &["", "a", "a/b"][..], &[][..]),
            ("/v1/*", &["/v1/", "/v1/a/b"], &["/v1", "/v2/"]),
            ("*.png", &[".png", "a.png"], &["a.png2"]),
            ("a*a", &["aa", "aba"], &["a", "ab"]),
            ("/v1/*/items/*", &["/v1/7/items/", "/v1/a/b/items/8"], &["/v1/items/8"]),
            ("*a*b*", &["ab", "xaxbx", "aab"], &["ba", "a"]),
            ("a**b", &["ab", "axb"], &["a"]),
            ("é*", &["é", "éa"], &["e"]),
        ] {
            let parsed = Glob::parse(glob).unwrap();
            for text in matching {
                assert!(parsed.matches(text), "{glob} {text}");
            }
            for text in others {
                assert!(!parsed.matches(text), "{glob} {text}");
            }
        }
        assert_eq!(Glob::parse("plain"), None);
    }
}
