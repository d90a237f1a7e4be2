//! The tokens of an expression.

use std::{iter::Peekable, str::CharIndices};

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A name. Hyphens and slashes are part of names in limits from before CEL.
    Name(String),
    Text(String),
    Integer(i64),
    /// An operator, a bracket, a comma or a dot.
    Symbol(&'static str),
}

/// Operators and punctuation; longer ones first.
const SYMBOLS: [&str; 19] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "!", "(", ")", "[", "]", ",", ".", "?", ":", "+",
    "%",
];

/// Splits an expression into tokens.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, char)) = chars.peek().copied() {
        if char.is_whitespace() {
            chars.next();
            continue;
        }
        let rest = &text[at..];
        let is_raw = rest.starts_with(['r', 'R']) && rest[1..].starts_with(['"', '\'']);
        if is_raw || matches!(char, '"' | '\'') {
            if is_raw {
                chars.next();
            }
            tokens.push(Token::Text(string(&mut chars, is_raw)?));
        } else if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            skip(&mut chars, symbol);
            tokens.push(Token::Symbol(symbol));
        } else if is_part_of_name(char) {
            tokens.push(word(rest, &mut chars)?);
        } else {
            return Err(format!("unexpected {char:?}"));
        }
    }
    Ok(tokens)
}

/// A name or a number.
fn word(rest: &str, chars: &mut Peekable<CharIndices<'_>>) -> Result<Token, String> {
    let length = rest.find(|c| !is_part_of_name(c)).unwrap_or(rest.len());
    let word = &rest[..length];
    skip(chars, word);
    if !word.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit()) {
        return Ok(Token::Name(word.to_owned()));
    }
    if rest[length..].starts_with('.') {
        return Err("numbers with a fraction are not supported".to_owned());
    }
    match word.trim_end_matches(['u', 'U']).parse() {
        Ok(number) => Ok(Token::Integer(number)),
        // A value without quotes.
        Err(_) => Ok(Token::Name(word.to_owned())),
    }
}

fn skip(chars: &mut Peekable<CharIndices<'_>>, text: &str) {
    for _ in text.chars() {
        chars.next();
    }
}

const fn is_part_of_name(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '/')
}

/// A string from its quote on.
fn string(chars: &mut Peekable<CharIndices<'_>>, is_raw: bool) -> Result<String, String> {
    let Some((_, quote)) = chars.next() else { return Err("unexpected end".to_owned()) };
    let mut text = String::new();
    while let Some((_, char)) = chars.next() {
        match char {
            char if char == quote => return Ok(text),
            '\\' if !is_raw => text.push(escape(chars)?),
            char => text.push(char),
        }
    }
    Err("a string does not end".to_owned())
}

fn escape(chars: &mut Peekable<CharIndices<'_>>) -> Result<char, String> {
    let Some((_, char)) = chars.next() else { return Err("a string does not end".to_owned()) };
    let mut hex = |digits: usize| {
        let code: String = chars.by_ref().take(digits).map(|(_, char)| char).collect();
        let code = u32::from_str_radix(&code, 16).ok().and_then(char::from_u32);
        code.ok_or_else(|| format!("invalid escape \\{char} in a string"))
    };
    match char {
        'n' => Ok('\n'),
        'r' => Ok('\r'),
        't' => Ok('\t'),
        'x' | 'X' => hex(2),
        'u' => hex(4),
        'U' => hex(8),
        '\\' | '\'' | '"' | '`' | '?' => Ok(char),
        _ => Err(format!("invalid escape \\{char} in a string")),
    }
}
