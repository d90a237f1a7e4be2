//! Tests of one entry as a condition of a rule.

use serde_json::{Map, Value as Json, json};

use super::predicate::{TextPattern, ValueTest};

/// Returns the condition that holds where all tests hold.
pub(super) fn condition(tests: &[ValueTest]) -> Result<Json, String> {
    if tests.contains(&ValueTest::Absent) {
        if tests.iter().any(|test| *test != ValueTest::Absent) {
            return Err("it needs an entry to be there and to be missing".to_owned());
        }
        return Ok(json!({"exists": false}));
    }
    let mut object = Map::new();
    let mut excluded = Vec::new();
    for test in tests {
        match test {
            ValueTest::OneOf(patterns) => put(&mut object, patterns)?,
            ValueTest::NoneOf(patterns) => excluded.extend_from_slice(patterns),
            ValueTest::AtLeast(number) => {
                let known = object.get("min").and_then(Json::as_i64).unwrap_or(*number);
                object.insert("min".to_owned(), known.max(*number).into());
            }
            ValueTest::AtMost(number) => {
                let known = object.get("max").and_then(Json::as_i64).unwrap_or(*number);
                object.insert("max".to_owned(), known.min(*number).into());
            }
            ValueTest::Present | ValueTest::Absent => {}
        }
    }
    if !excluded.is_empty() {
        object.insert("not".to_owned(), one_of(&excluded));
    }
    if object.is_empty() {
        object.insert("exists".to_owned(), true.into());
    }
    Ok(shortest(object))
}

/// Adds a test under a key that is still free.
fn put(object: &mut Map<String, Json>, patterns: &[TextPattern]) -> Result<(), String> {
    let mut forms = Vec::from([match one_of(patterns) {
        Json::Object(form) => form,
        texts @ Json::Array(_) => Map::from_iter([("one_of".to_owned(), texts)]),
        text => Map::from_iter([("equals".to_owned(), text)]),
    }]);
    forms.push(Map::from_iter([("regex".to_owned(), regex(patterns).into())]));
    let is_free = |form: &Map<String, Json>| form.keys().all(|key| !object.contains_key(key));
    match forms.into_iter().find(is_free) {
        Some(form) => {
            object.extend(form);
            Ok(())
        }
        None => Err("too many tests of one entry: join them in one regular expression".to_owned()),
    }
}

/// Returns a condition that holds for texts that match one of the patterns.
fn one_of(patterns: &[TextPattern]) -> Json {
    match patterns {
        [TextPattern::Exact(text)] if !text.contains('*') => text.as_str().into(),
        [TextPattern::Exact(text)] => json!({"equals": text}),
        [TextPattern::Prefix(text)] => json!({"prefix": text}),
        [TextPattern::Suffix(text)] => json!({"suffix": text}),
        several => {
            let globs: Option<Vec<String>> = several.iter().map(TextPattern::glob).collect();
            match globs {
                Some(globs) if globs.len() == 1 => json!({"glob": globs[0]}),
                Some(globs) => globs.into(),
                None => json!({"regex": regex(several)}),
            }
        }
    }
}

/// An object with nothing but a text or a list of texts is written as these.
fn shortest(mut object: Map<String, Json>) -> Json {
    if object.len() == 1 {
        let is_plain = |text: &Json| text.as_str().is_some_and(|text| !text.contains('*'));
        if object.get("equals").is_some_and(is_plain) {
            return object.remove("equals").unwrap_or_default();
        }
        if let Some(texts) = object.remove("one_of") {
            return texts;
        }
    }
    Json::Object(object)
}

/// Returns a regular expression that matches, as a whole, texts that match one of the patterns.
fn regex(patterns: &[TextPattern]) -> String {
    let alternatives: Vec<String> = patterns.iter().map(TextPattern::regex).collect();
    match &alternatives[..] {
        [one] => one.clone(),
        several => format!("(?:{})", several.join("|")),
    }
}

// === impl TextPattern ===

/// Any characters, also line ends.
const ANY: &str = "(?s:.*)";

impl TextPattern {
    /// Returns the text with wildcards; `None` if a wildcard cannot express it.
    fn glob(&self) -> Option<String> {
        let (text, glob) = match self {
            Self::Exact(text) => (text, text.clone()),
            Self::Prefix(text) => (text, format!("{text}*")),
            Self::Suffix(text) => (text, format!("*{text}")),
            Self::Contains(text) => (text, format!("*{text}*")),
            Self::Found(_) => return None,
        };
        (!text.contains('*')).then_some(glob)
    }

    fn regex(&self) -> String {
        match self {
            Self::Exact(text) => escaped(text),
            Self::Prefix(text) => format!("{}{ANY}", escaped(text)),
            Self::Suffix(text) => format!("{ANY}{}", escaped(text)),
            Self::Contains(text) => format!("{ANY}{}{ANY}", escaped(text)),
            Self::Found(regex) => whole(regex),
        }
    }
}

/// Returns an expression that matches texts in which `regex` is found.
fn whole(regex: &str) -> String {
    // With alternatives, an anchor belongs to one of them only.
    if regex.contains('|') {
        return format!("{ANY}(?:{regex}){ANY}");
    }
    let (before, rest) = match regex.strip_prefix('^') {
        Some(rest) => ("", rest),
        None => (ANY, regex),
    };
    let backslashes =
        rest.strip_suffix('$').map(|rest| rest.len() - rest.trim_end_matches('\\').len());
    match rest.strip_suffix('$') {
        Some(rest) if backslashes.is_some_and(|count| count % 2 == 0) => format!("{before}{rest}"),
        _ => format!("{before}{rest}{ANY}"),
    }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        if r"\.+*?()|[]{}^$#&-~".contains(char) {
            escaped.push('\\');
        }
        escaped.push(char);
    }
    escaped
}
