//! Detection of duplicate bodies.

use std::time::Duration;

use unicode_normalization::UnicodeNormalization;

use crate::invisible::visible;

/// Period in which a body cannot be repeated.
pub const PERIOD: Duration = Duration::from_hours(24);

/// Normalises a body for comparison: width, kana, case, space and invisible characters are ignored.
pub fn normalise(body: &str) -> String {
    let kana: String = visible(body).nfkc().map(hiragana).collect();
    let spaced: Vec<&str> = kana.split_whitespace().collect();
    spaced.join(" ").to_lowercase()
}

/// Converts katakana to hiragana, which are 96 code points apart.
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
    fn spelling_variants_normalise_to_the_same_text() {
        let same = [
            ("カタカナ", "かたかな"),
            ("ｶﾀｶﾅ", "かたかな"),
            ("ｶﾞｷﾞｸﾞ", "がぎぐ"),
            ("ヴァイオリン", "ゔぁいおりん"),
            ("ＡＢＣ１２３", "abc123"),
            ("Hello", "hello"),
            ("  a\u{3000}\u{3000}b \t\n c ", "a b c"),
            ("㍻", "平成"),
            ("\u{200b}a\u{ad}b \u{feff} c\u{fe0f}", "ab c"),
            ("e\u{34f}\u{301}", "é"),
            ("👨\u{200d}👩", "👨👩"),
        ];
        for (body, content) in same {
            assert_eq!(normalise(body), content, "{body}");
        }
    }

    #[test]
    fn different_texts_stay_different() {
        assert_ne!(normalise("a b"), normalise("ab"));
        assert_ne!(normalise("らーめん"), normalise("らめん"));
        assert_ne!(normalise("はし"), normalise("ばし"));
    }
}
