//! Conditions in JSON.

use serde_json::{Map, Value as Json};

use super::{Condition, Kind, glob::Glob, network::Network, regex::Regex, test::Test};
use crate::attributes::number_text;

/// The keys of a condition that is an object.
const KEYS: &str = "equals, one_of, glob, prefix, suffix, in, not_in, min, max, regex, exists, not";

/// Parses a condition; returns all errors.
pub(super) fn condition(source: &Json) -> Result<Kind, Vec<String>> {
    let mut parser = Parser::default();
    let kind = parser.condition(source);
    if parser.errors.is_empty() { Ok(kind) } else { Err(parser.errors) }
}

#[derive(Default)]
struct Parser {
    errors: Vec<String>,
}

/// The texts of a test: literals, or globs where wildcards count.
#[derive(Default)]
struct Texts {
    literals: Vec<Box<str>>,
    globs: Vec<Glob>,
}

// === impl Parser ===

impl Parser {
    fn condition(&mut self, source: &Json) -> Kind {
        match source {
            Json::Object(fields) if fields.get("exists") == Some(&Json::Bool(false)) => {
                if fields.len() > 1 {
                    self.refuse("exists: false cannot be combined with other keys");
                }
                Kind::Absent
            }
            _ => Kind::Present(self.tests(source, false).into()),
        }
    }

    /// The tests of a condition; those within `not` may not be negative themselves.
    fn tests(&mut self, source: &Json, negated: bool) -> Vec<Test> {
        let mut texts = Texts::default();
        match source {
            Json::String(_) | Json::Number(_) => self.text(source, "", true, &mut texts),
            Json::Array(items) => self.texts(items, "", &mut texts),
            Json::Object(fields) if fields.is_empty() => {
                self.refuse(format!("an object needs one of: {KEYS}"));
            }
            Json::Object(fields) => return self.object(fields, negated),
            other => self.refuse(format!(
                "must be a string, a number, a list or an object, got {}",
                kind(other)
            )),
        }
        vec![texts.into()]
    }

    fn object(&mut self, fields: &Map<String, Json>, negated: bool) -> Vec<Test> {
        let mut tests = Vec::new();
        for (key, value) in fields {
            let mut listed = Texts::default();
            match key.as_str() {
                "equals" => self.text(value, key, false, &mut listed),
                "one_of" => match value {
                    Json::Array(items) => self.texts(items, key, &mut listed),
                    other => self.wrong_type(key, "a list", other),
                },
                "glob" => self.text(value, key, true, &mut listed),
                "prefix" | "suffix" => {
                    let text = self.string(key, value);
                    let (prefix, suffix) = if key == "prefix" { (text, "") } else { ("", text) };
                    listed.globs.push(Glob::around(prefix, suffix));
                }
                "in" => tests.push(Test::In(self.networks(key, value))),
                "not_in" if !negated => tests.push(Test::NotIn(self.networks(key, value))),
                "min" | "max" => {} // Below, together.
                "regex" => {
                    let text = self.string(key, value);
                    match Regex::parse(text) {
                        Ok(regex) => tests.push(Test::Regex(regex)),
                        Err(error) => self.refuse(format!("regex {error}")),
                    }
                }
                "exists" if !negated => {
                    if *value != Json::Bool(true) {
                        self.wrong_type(key, "true or false", value);
                    }
                    tests.push(Test::Exists);
                }
                "not" if !negated => tests.push(Test::Not(self.tests(value, true).into())),
                "not" | "not_in" | "exists" => self.refuse(format!("{key} may not be within not")),
                _ => self.refuse(format!("unknown key {:?}; known here: {KEYS}", excerpt(key))),
            }
            if !listed.is_empty() {
                tests.push(listed.into());
            }
        }
        tests.extend(self.range(fields));
        tests
    }

    fn range(&mut self, fields: &Map<String, Json>) -> Option<Test> {
        let mut bound = |key: &str| {
            let value = fields.get(key)?;
            let number = value.as_f64();
            if number.is_none() {
                self.wrong_type(key, "a number", value);
            }
            number
        };
        let (min, max) = (bound("min"), bound("max"));
        if let (Some(min), Some(max)) = (min, max)
            && min > max
        {
            self.refuse("min must not be greater than max");
        }
        (min.is_some() || max.is_some()).then_some(Test::Range { min, max })
    }

    fn texts(&mut self, items: &[Json], place: &str, texts: &mut Texts) {
        if !(1..=Condition::MAX_ITEMS).contains(&items.len()) {
            let message = format!("a list must have 1 to {} items", Condition::MAX_ITEMS);
            return self.refuse(message);
        }
        for item in items {
            self.text(item, place, true, texts);
        }
    }

    /// A text, which is a glob if it has a wildcard, or a number.
    fn text(&mut self, value: &Json, place: &str, wildcards: bool, texts: &mut Texts) {
        let text = match value {
            Json::String(text) => text.clone(),
            Json::Number(number) => {
                // Integers keep all their digits.
                let float = number.as_f64().filter(|_| number.is_f64());
                float.map_or_else(|| Some(number.to_string()), number_text).unwrap_or_default()
            }
            other => {
                let what = if place.is_empty() { "an item" } else { place };
                return self.wrong_type(what, "a string or a number", other);
            }
        };
        if text.len() > Condition::MAX_TEXT_BYTES {
            return self.too_long();
        }
        match Glob::parse(&text).filter(|_| wildcards) {
            Some(glob) => texts.globs.push(glob),
            None => texts.literals.push(text.into()),
        }
    }

    fn networks(&mut self, key: &str, value: &Json) -> Box<[Network]> {
        let items = match value {
            Json::Array(items) => &items[..],
            one => std::slice::from_ref(one),
        };
        if !(1..=Condition::MAX_ITEMS).contains(&items.len()) {
            self.refuse(format!("{key} must have 1 to {} items", Condition::MAX_ITEMS));
        }
        let mut networks = Vec::new();
        for item in items.iter().take(Condition::MAX_ITEMS) {
            match self.string(key, item).parse() {
                Ok(network) => networks.push(network),
                Err(error) => self.refuse(format!("{key}: {error}")),
            }
        }
        networks.into()
    }

    fn string<'v>(&mut self, key: &str, value: &'v Json) -> &'v str {
        let Json::String(text) = value else {
            self.wrong_type(key, "a string", value);
            return "";
        };
        if text.len() > Condition::MAX_TEXT_BYTES {
            self.too_long();
            return "";
        }
        text
    }

    fn wrong_type(&mut self, what: &str, expected: &str, got: &Json) {
        self.refuse(format!("{what} must be {expected}, got {}", kind(got)));
    }

    fn too_long(&mut self) {
        self.refuse(format!("a text must be at most {} bytes long", Condition::MAX_TEXT_BYTES));
    }

    fn refuse(&mut self, message: impl Into<String>) {
        self.errors.push(message.into());
    }
}

// === impl Texts ===

impl Texts {
    fn is_empty(&self) -> bool {
        self.literals.is_empty() && self.globs.is_empty()
    }
}

impl From<Texts> for Test {
    fn from(Texts { mut literals, globs }: Texts) -> Self {
        literals.sort();
        literals.dedup();
        Self::Texts { literals: literals.into(), globs: globs.into() }
    }
}

fn excerpt(text: &str) -> String {
    text.chars().take(64).collect()
}

/// The name of a type in messages.
pub(crate) const fn kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "nothing",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}
