//! When two bodies are the same.

use std::time::Duration;

use unicode_normalization::UnicodeNormalization;

/// For so long nobody posts what somebody has posted.
pub const PERIOD: Duration = Duration::from_hours(24);

/// What a body says, however it is typed: width, kana, case and space do not count.
pub fn normalise(body: &str) -> String {
    let kana: String = body.nfkc().map(hiragana).collect();
    let spaced: Vec<&str> = kana.split_whitespace().collect();
    spaced.join(" ").to_lowercase()
}

/// The hiragana of a katakana: they stand in the same order, 96 places apart.
fn hiragana(c: char) -> char {
    match c {
        'ァ'..='ヶ' | 'ヽ' | 'ヾ' => char::from_u32(u32::from(c) - 0x60).unwrap_or(c),
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_the_same_is_the_same() {
        let same = [
            ("カタカナ", "かたかな"),
            ("ｶﾀｶﾅ", "かたかな"),
            ("ｶﾞｷﾞｸﾞ", "がぎぐ"),
            ("ヴァイオリン", "ゔぁいおりん"),
            ("ＡＢＣ１２３", "abc123"),
            ("Hello", "hello"),
            ("  a\u{3000}\u{3000}b \t\n c ", "a b c"),
            ("㍻", "平成"),
        ];
        for (body, content) in same {
            assert_eq!(normalise(body), content, "{body}");
        }
    }

    #[test]
    fn what_says_something_else_is_not() {
        assert_ne!(normalise("a b"), normalise("ab"));
        assert_ne!(normalise("らーめん"), normalise("らめん"));
        assert_ne!(normalise("はし"), normalise("ばし"));
    }
}
