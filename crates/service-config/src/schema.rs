//! Schema of a document as data, so that a program that does not know a document's type can
//! validate it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::problem::{FieldProblem, escaped};

/// Fields of an object, by name.
pub type Fields = BTreeMap<String, DocumentSchema>;

/// Type, bounds and default of one value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum DocumentSchema {
    /// An object with these fields and no others.
    Object {
        /// Its fields.
        fields: Fields,
        /// True if `null` is allowed, with the same meaning as a missing field.
        #[serde(default)]
        nullable: bool,
    },
    /// A whole number.
    Integer {
        /// Least value.
        minimum: u64,
        /// Greatest value.
        maximum: u64,
        /// Value of a missing field, if it has one.
        #[serde(default)]
        default: Option<u64>,
        /// True if `null` is allowed, with the same meaning as a missing field.
        #[serde(default)]
        nullable: bool,
        /// Name of a field of the same object that must not be greater.
        #[serde(default)]
        not_less_than: Option<String>,
    },
    /// `true` or `false`.
    Boolean {
        /// Value of a missing field.
        default: bool,
    },
    /// One of several words.
    Choice {
        /// The words.
        choices: Vec<String>,
        /// Value of a missing field.
        default: String,
    },
    /// A list of anything.
    List {
        /// Maximum number of items.
        max_items: usize,
    },
    /// An object whose values are lists of anything.
    ListMap {
        /// Maximum number of lists, and of items in each.
        max_items: usize,
    },
    /// Anything, `null` included. Types that a newer program added are read as this one.
    #[serde(other)]
    Any,
}

// === impl DocumentSchema ===

impl DocumentSchema {
    /// Returns everything that is wrong with `value`, unknown fields included.
    pub fn problems(&self, value: &Value) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        self.check(value, "", &mut problems);
        problems
    }

    fn check(&self, value: &Value, pointer: &str, problems: &mut Vec<FieldProblem>) {
        if let Self::Object { fields, .. } = self
            && let Value::Object(values) = value
        {
            return check_fields(fields, values, pointer, problems);
        }
        if !self.allows(value) {
            problems.push(FieldProblem::new(pointer, self.expected()));
        }
    }

    /// Returns true if the value alone is valid, apart from the fields of an object.
    fn allows(&self, value: &Value) -> bool {
        let short =
            |value: &Value, most: usize| value.as_array().is_some_and(|items| items.len() <= most);
        match self {
            Self::Object { nullable, .. } => value.is_object() || (*nullable && value.is_null()),
            Self::Integer { minimum, maximum, nullable, .. } => {
                let in_range = |number| (*minimum..=*maximum).contains(&number);
                value.as_u64().is_some_and(in_range) || (*nullable && value.is_null())
            }
            Self::Boolean { .. } => value.is_boolean(),
            Self::Choice { choices, .. } => {
                value.as_str().is_some_and(|word| choices.iter().any(|choice| choice == word))
            }
            Self::List { max_items } => short(value, *max_items),
            Self::ListMap { max_items } => value.as_object().is_some_and(|lists| {
                lists.len() <= *max_items && lists.values().all(|list| short(list, *max_items))
            }),
            Self::Any => true,
        }
    }

    fn expected(&self) -> String {
        match self {
            Self::Object { .. } => "must be an object".to_owned(),
            Self::Integer { minimum, maximum, .. } => {
                format!("must be a whole number from {minimum} to {maximum}")
            }
            Self::Boolean { .. } => "must be true or false".to_owned(),
            Self::Choice { choices, .. } => format!("must be one of: {}", choices.join(", ")),
            Self::List { max_items } => format!("must be a list of at most {max_items} items"),
            Self::ListMap { max_items } => {
                format!(
                    "must be an object of at most {max_items} lists, each of at most {max_items} items"
                )
            }
            Self::Any => String::new(),
        }
    }

    /// Value of an integer field: the given one if it is valid, else the default.
    fn integer(&self, value: Option<&Value>) -> Option<u64> {
        let Self::Integer { default, .. } = self else { return None };
        value.filter(|value| self.allows(value)).and_then(Value::as_u64).or(*default)
    }
}

fn check_fields(
    fields: &Fields,
    values: &Map<String, Value>,
    pointer: &str,
    problems: &mut Vec<FieldProblem>,
) {
    for (name, value) in values {
        let pointer = format!("{pointer}/{}", escaped(name));
        match fields.get(name) {
            Some(schema) => schema.check(value, &pointer, problems),
            None => problems.push(FieldProblem::unknown_field(pointer)),
        }
    }
    for (name, schema) in fields {
        let DocumentSchema::Integer { not_less_than: Some(other), .. } = schema else { continue };
        let bound = fields.get(other).and_then(|schema| schema.integer(values.get(other)));
        if schema.integer(values.get(name)).is_some_and(|number| Some(number) < bound) {
            let pointer = format!("{pointer}/{}", escaped(name));
            problems.push(FieldProblem::new(&pointer, format!("must not be less than {other}")));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pointers(schema: &Value, value: &Value) -> Vec<String> {
        let schema: DocumentSchema = serde_json::from_value(schema.clone()).unwrap();
        schema.problems(value).into_iter().map(|problem| problem.pointer).collect()
    }

    #[test]
    fn a_schema_survives_a_round_trip_through_json() {
        let schema = DocumentSchema::Object {
            fields: Fields::from([
                ("any".to_owned(), DocumentSchema::Any),
                ("list".to_owned(), DocumentSchema::List { max_items: 2 }),
            ]),
            nullable: true,
        };
        let text = serde_json::to_string(&schema).unwrap();
        assert_eq!(serde_json::from_str::<DocumentSchema>(&text).unwrap(), schema);
    }

    #[test]
    fn an_unknown_type_allows_anything() {
        let schema = json!({"type": "object", "fields": {"at": {"type": "cron", "zone": "UTC"}}});
        assert_eq!(pointers(&schema, &json!({"at": "0 0 * * *"})), [""; 0]);
        assert_eq!(pointers(&schema, &json!({"on": 1})), ["/on"]);
    }

    #[test]
    fn lists_are_bounded() {
        let list = json!({"type": "list", "max_items": 1});
        assert_eq!(pointers(&list, &json!([{}])), [""; 0]);
        assert_eq!(pointers(&list, &json!([1, 2])), [""]);
        let lists = json!({"type": "list_map", "max_items": 1});
        assert_eq!(pointers(&lists, &json!({"a": [1]})), [""; 0]);
        for wrong in [json!({"a": [1, 2]}), json!({"a": [], "b": []}), json!({"a": 1}), json!([])] {
            assert_eq!(pointers(&lists, &wrong), [""], "{wrong}");
        }
    }

    #[test]
    fn a_number_is_compared_with_the_default_of_the_other() {
        let number = |default: u64| json!({"type": "integer", "minimum": 1, "maximum": 99, "default": default});
        let mut max = number(20);
        max["not_less_than"] = json!("first");
        let schema = json!({"type": "object", "fields": {"first": number(10), "max": max}});
        for (value, expected) in [
            (json!({}), None),
            (json!({"max": 9}), Some("/max")),
            (json!({"first": 21}), Some("/max")),
            (json!({"first": 7, "max": 7}), None),
        ] {
            assert_eq!(pointers(&schema, &value), Vec::from_iter(expected), "{value}");
        }
    }
}
