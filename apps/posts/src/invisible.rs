//! Characters that are not seen. Two texts that differ in them only are the same to a reader.

/// Returns `text` without invisible characters. Space stays.
pub(crate) fn visible(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|c| !is_invisible(*c))
}

/// Returns true if `text` has neither visible characters nor space.
pub(crate) fn is_unseen(text: &str) -> bool {
    visible(text).next().is_none()
}

/// Returns true if `text` looks empty.
pub(crate) fn is_blank(text: &str) -> bool {
    visible(text).all(char::is_whitespace)
}

/// Returns true for characters that most fonts show as nothing.
fn is_invisible(c: char) -> bool {
    is_default_ignorable(c)
        // The empty braille cell, and marks of annotations.
        || matches!(c, '\u{2800}' | '\u{fff9}'..='\u{fffb}')
        || (c.is_control() && !c.is_whitespace())
}

/// Unicode's property `Default_Ignorable_Code_Point`: among others joiners and variation selectors
/// of emoji.
const fn is_default_ignorable(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_removed() {
        for c in [
            '\0',
            '\u{1b}',
            '\u{7f}',
            '\u{ad}',
            '\u{34f}',
            '\u{200b}',
            '\u{200d}',
            '\u{200e}',
            '\u{202e}',
            '\u{2060}',
            '\u{2800}',
            '\u{3164}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{fffa}',
            '\u{e0041}',
            '\u{e01ef}',
        ] {
            let text = format!("{c}太{c} 郎{c}");
            assert_eq!(visible(&text).collect::<String>(), "太 郎", "{c:?}");
            assert!(is_unseen(&c.to_string()) && is_blank(&format!(" {c}\u{3000}")), "{c:?}");
        }
    }

    #[test]
    fn everything_else_stays() {
        let text = "a\u{301} \u{3000}\t\r\n\u{85}ｶﾞー・👍🏽ــ\u{93f}\u{fffd}";
        assert_eq!(visible(text).collect::<String>(), text);
        assert!(!is_unseen(" ") && is_blank(" \u{85}") && !is_blank("."));
    }
}
