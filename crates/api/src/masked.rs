use std::fmt;

/// A key masked for logs: recognizable if the key is known, but not reversible.
#[derive(Clone, Copy)]
pub struct Masked<'a>(pub &'a str);

impl Masked<'_> {
    /// Longest key that is hidden completely.
    const HIDDEN_CHARS: usize = 6;
}

impl fmt::Display for Masked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.chars().count();
        if count <= Self::HIDDEN_CHARS {
            return f.write_str("***");
        }
        let place = |chars: usize| self.0.char_indices().nth(chars).map_or(0, |(at, _)| at);
        write!(f, "{}***{}", &self.0[..place(3)], &self.0[place(count - 2)..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_ends_of_a_long_key_are_shown() {
        let cases = [
            ("", "***"),
            ("user:1", "***"),
            ("user:12", "use***12"),
            ("api_key:abc123", "api***23"),
            ("ユーザー:1234", "ユーザ***34"),
            ("ユーザー12", "***"),
        ];
        for (key, shown) in cases {
            assert_eq!(Masked(key).to_string(), shown);
        }
    }
}
