//! Reads fields out of JSON, and notes everything that is wrong with them.

use std::{collections::BTreeSet, ops::RangeInclusive};

use serde_json::{Map, Value};

use crate::problem::{Problem, escaped};

/// Reads the fields of one object. A field that is missing is left to its default; one that is wrong is
/// noted, and reading goes on. `null` is wrong but where a field may have no value: whoever writes it
/// does not say what they mean, which may be more than the default gives.
#[derive(Debug)]
pub struct Reader<'v> {
    fields: Option<&'v Map<String, Value>>,
    pointer: String,
    known: BTreeSet<&'static str>,
    problems: Vec<Problem>,
}

// === impl Reader ===

impl<'v> Reader<'v> {
    /// Reads the object at `pointer`; nothing is an empty one.
    pub(crate) fn new(value: Option<&'v Value>, pointer: String) -> Self {
        let fields = value.and_then(Value::as_object);
        let mut problems = Vec::new();
        if value.is_some() && fields.is_none() {
            let (pointer, message) = (pointer.clone(), "must be an object".to_owned());
            problems.push(Problem { pointer, message, unknown: false });
        }
        Self { fields, pointer, known: BTreeSet::new(), problems }
    }

    /// What `read` makes of the section with this name.
    pub fn section<T>(&mut self, name: &'static str, read: impl FnOnce(&mut Self) -> T) -> T {
        let mut inner = Self::new(self.take(name), self.at(name));
        let section = read(&mut inner);
        self.problems.extend(inner.finish());
        section
    }

    /// A whole number within `range`.
    pub fn number(&mut self, name: &'static str, range: RangeInclusive<u64>, default: u64) -> u64 {
        self.given_number(name, range).unwrap_or(default)
    }

    /// A whole number within `range`, or none: nothing and `null` are the same.
    pub fn optional_number(
        &mut self,
        name: &'static str,
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        if self.anything(name).is_some() { self.given_number(name, range) } else { None }
    }

    /// A whole number within `range`, if the field is there.
    pub fn given_number(&mut self, name: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        let value = self.take(name)?;
        let number = value.as_u64().filter(|number| range.contains(number));
        if number.is_none() {
            let (least, most) = range.into_inner();
            self.note(name, format!("must be a whole number from {least} to {most}"));
        }
        number
    }

    /// A flag.
    pub fn flag(&mut self, name: &'static str, default: bool) -> bool {
        let Some(value) = self.take(name) else { return default };
        value.as_bool().unwrap_or_else(|| {
            self.note(name, "must be true or false");
            default
        })
    }

    /// One of the named choices.
    pub fn choice<T: Copy>(&mut self, name: &'static str, choices: &[(&str, T)], default: T) -> T {
        let Some(value) = self.take(name) else { return default };
        let chosen = choices.iter().find(|(choice, _)| value.as_str() == Some(choice));
        if let Some((_, chosen)) = chosen {
            return *chosen;
        }
        let names: Vec<&str> = choices.iter().map(|(choice, _)| *choice).collect();
        self.note(name, format!("must be one of: {}", names.join(", ")));
        default
    }

    /// Whatever stands there, but `null`: others read it.
    pub fn anything(&mut self, name: &'static str) -> Option<&'v Value> {
        self.take(name).filter(|value| !value.is_null())
    }

    /// Whatever stands there, if the field is there.
    pub fn take(&mut self, name: &'static str) -> Option<&'v Value> {
        self.known.insert(name);
        self.fields?.get(name)
    }

    /// Notes what is wrong with a field.
    pub fn note(&mut self, name: &str, message: impl Into<String>) {
        let pointer = self.at(name);
        self.problems.push(Problem { pointer, message: message.into(), unknown: false });
    }

    /// Everything that is wrong, fields that nobody asked for included.
    pub(crate) fn finish(mut self) -> Vec<Problem> {
        let strangers: Vec<&String> = self
            .fields
            .into_iter()
            .flat_map(Map::keys)
            .filter(|name| !self.known.contains(name.as_str()))
            .collect();
        for name in strangers {
            let (pointer, message) = (self.at(name), "is not a field of this section".to_owned());
            self.problems.push(Problem { pointer, message, unknown: true });
        }
        self.problems
    }

    fn at(&self, name: &str) -> String {
        format!("{}/{}", self.pointer, escaped(name))
    }
}
