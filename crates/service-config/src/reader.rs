//! Reads the fields of a JSON object, and collects their schema on the way.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::schema::{DocumentSchema, Fields};

/// Reads the fields of one object.
///
/// A field that is missing or invalid is read as its default; validation against the schema reports
/// it later. `null` is invalid unless the field is optional: it may be meant as more than the
/// default allows.
#[derive(Debug, Default)]
pub struct Reader<'v> {
    values: Option<&'v Map<String, Value>>,
    fields: Fields,
}

// === impl Reader ===

impl<'v> Reader<'v> {
    /// Reads `value`; without one, every field is missing.
    pub(crate) fn new(value: Option<&'v Value>) -> Self {
        Self { values: value.and_then(Value::as_object), fields: Fields::new() }
    }

    /// Reads the object of this name.
    pub fn section<T>(&mut self, name: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        self.object(name, false, read)
    }

    /// Reads the object of this name; `None` if it is missing or `null`.
    pub fn optional_section<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&mut Self) -> T,
    ) -> Option<T> {
        let is_given = self.value(name).is_some_and(|value| !value.is_null());
        // Read in any case: the schema does not depend on the values.
        let section = self.object(name, true, read);
        is_given.then_some(section)
    }

    /// Reads a whole number within `range`.
    pub fn number(&mut self, name: &str, range: RangeInclusive<u64>, default: u64) -> u64 {
        self.integer(name, range, Some(default), None).unwrap_or(default)
    }

    /// Reads a whole number within `range` that is not less than the field `other`.
    pub fn number_not_less_than(
        &mut self,
        other: &str,
        name: &str,
        range: RangeInclusive<u64>,
        default: u64,
    ) -> u64 {
        self.integer(name, range, Some(default), Some(other)).unwrap_or(default)
    }

    /// Reads a whole number within `range`; `None` if it is missing.
    pub fn given_number(&mut self, name: &str, range: RangeInclusive<u64>) -> Option<u64> {
        self.integer(name, range, None, None)
    }

    /// Reads a whole number within `range`; `None` if it is missing or `null`.
    pub fn optional_number(&mut self, name: &str, range: RangeInclusive<u64>) -> Option<u64> {
        let number = self.integer(name, range, None, None);
        if let Some(DocumentSchema::Integer { nullable, .. }) = self.fields.get_mut(name) {
            *nullable = true;
        }
        number
    }

    /// Reads a flag.
    pub fn flag(&mut self, name: &str, default: bool) -> bool {
        self.add(name, DocumentSchema::Boolean { default });
        self.value(name).and_then(Value::as_bool).unwrap_or(default)
    }

    /// Reads one of the named choices, of which the first is the default.
    pub fn choice<T: Copy>(&mut self, name: &str, default: (&str, T), others: &[(&str, T)]) -> T {
        let all = || [default].into_iter().chain(others.iter().copied());
        let choices = all().map(|(word, _)| word.to_owned()).collect();
        self.add(name, DocumentSchema::Choice { choices, default: default.0.to_owned() });
        let given = self.value(name).and_then(Value::as_str);
        all().find(|(word, _)| given == Some(word)).unwrap_or(default).1
    }

    /// Reads a list of at most `max_items` values of any kind; an empty one if it is missing.
    pub fn list(&mut self, name: &str, max_items: usize) -> Vec<Value> {
        self.add(name, DocumentSchema::List { max_items });
        self.value(name).and_then(Value::as_array).cloned().unwrap_or_default()
    }

    /// Reads an object of at most `max_items` lists, each of at most as many values of any kind.
    pub fn list_map(&mut self, name: &str, max_items: usize) -> Map<String, Value> {
        self.add(name, DocumentSchema::ListMap { max_items });
        self.value(name).and_then(Value::as_object).cloned().unwrap_or_default()
    }

    /// Reads a value of any kind; `None` if it is missing or `null`.
    pub fn any(&mut self, name: &str) -> Option<&'v Value> {
        self.add(name, DocumentSchema::Any);
        self.value(name).filter(|value| !value.is_null())
    }

    /// Schema of everything that was read.
    pub(crate) fn into_schema(self) -> DocumentSchema {
        DocumentSchema::Object { fields: self.fields, nullable: false }
    }

    fn object<T>(&mut self, name: &str, nullable: bool, read: impl FnOnce(&mut Self) -> T) -> T {
        let mut inner = Self::new(self.value(name));
        let section = read(&mut inner);
        self.add(name, DocumentSchema::Object { fields: inner.fields, nullable });
        section
    }

    fn integer(
        &mut self,
        name: &str,
        range: RangeInclusive<u64>,
        default: Option<u64>,
        not_less_than: Option<&str>,
    ) -> Option<u64> {
        let number = self.value(name).and_then(Value::as_u64).filter(|it| range.contains(it));
        let (minimum, maximum) = range.into_inner();
        let not_less_than = not_less_than.map(str::to_owned);
        let nullable = false;
        self.add(
            name,
            DocumentSchema::Integer { minimum, maximum, default, nullable, not_less_than },
        );
        number
    }

    fn value(&self, name: &str) -> Option<&'v Value> {
        self.values?.get(name)
    }

    fn add(&mut self, name: &str, schema: DocumentSchema) {
        self.fields.insert(name.to_owned(), schema);
    }
}
