//! Kinds of documents, which programs register and documents are validated against.

use std::collections::BTreeMap;

use serde_json::Value;
use thiserror::Error;

use crate::{
    document::{self, Document},
    problem::{FieldProblem, summary},
    schema::DocumentSchema,
    secrets,
};

/// Maximum size of a document in bytes, as JSON without whitespace.
pub const MAX_BYTES: usize = 64 * 1024;

/// Maximum depth of a document. Parsers refuse 128, and audit entries contain documents.
const MAX_DEPTH: usize = 64;

/// Registry of the kinds of documents, by service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kinds(BTreeMap<String, DocumentKind>);

/// A kind of document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentKind {
    /// [`Document::REVISION`] of the schema.
    pub revision: u32,
    /// Schema of the documents.
    pub schema: DocumentSchema,
}

/// Reason for refusing a document.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Invalid {
    /// No kind of document is registered for the service.
    #[error("unknown service; known services: {}", .known.join(", "))]
    Service {
        /// Services with a registered kind.
        known: Vec<String>,
    },
    /// It is too large.
    #[error("the document has {0} bytes; at most {MAX_BYTES} are allowed")]
    TooLarge(usize),
    /// It has fields that are named like secrets, at these JSON pointers.
    #[error("documents hold no secrets; rename or remove: {}", .0.join(", "))]
    Secrets(Vec<String>),
    /// Fields are invalid or unknown.
    #[error("{}", summary(.0))]
    Fields(Vec<FieldProblem>),
}

// === impl Kinds ===

impl Kinds {
    /// A registry without kinds.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers `D` for its service.
    #[must_use]
    pub fn with<D: Document>(mut self) -> Self {
        self.0.insert(D::SERVICE.to_owned(), DocumentKind::of::<D>());
        self
    }

    /// Kind of the service's documents, if it is registered.
    pub fn get(&self, service: &str) -> Option<&DocumentKind> {
        self.0.get(service)
    }

    /// All services with their kinds of documents, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &DocumentKind)> {
        self.0.iter().map(|(service, kind)| (service.as_str(), kind))
    }

    /// Validates `config` as the document of `service`, as [`DocumentKind::validate`] does.
    pub fn validate(&self, service: &str, config: &Value) -> Result<(), Invalid> {
        let Some(kind) = self.get(service) else {
            return Err(Invalid::Service { known: self.0.keys().cloned().collect() });
        };
        kind.validate(config)
    }
}

impl FromIterator<(String, DocumentKind)> for Kinds {
    fn from_iter<I: IntoIterator<Item = (String, DocumentKind)>>(kinds: I) -> Self {
        Self(kinds.into_iter().collect())
    }
}

// === impl DocumentKind ===

impl DocumentKind {
    /// The kind of `D`.
    pub fn of<D: Document>() -> Self {
        Self { revision: D::REVISION, schema: document::schema::<D>() }
    }

    /// Validates `config`, and reports all problems at once. Unknown fields are problems: a
    /// misspelt limit limits nothing.
    pub fn validate(&self, config: &Value) -> Result<(), Invalid> {
        validate_by(&self.schema, config)
    }
}

/// Validates what holds for documents of every kind: an object of a bounded size without secrets.
pub fn validate_unregistered(config: &Value) -> Result<(), Invalid> {
    if config.is_object() {
        validate_by(&DocumentSchema::Any, config)
    } else {
        Err(Invalid::Fields(vec![FieldProblem::new("", "must be an object")]))
    }
}

fn validate_by(schema: &DocumentSchema, config: &Value) -> Result<(), Invalid> {
    let size = config.to_string().len();
    if size > MAX_BYTES {
        return Err(Invalid::TooLarge(size));
    }
    let secrets = secrets::find(config);
    if !secrets.is_empty() {
        return Err(Invalid::Secrets(secrets));
    }
    let mut problems = schema.problems(config);
    if has_nul(config) {
        // PostgreSQL does not store it.
        problems.push(FieldProblem::new("", "no text may contain the character NUL"));
    }
    if is_deeper_than(MAX_DEPTH, config) {
        let message = format!("lists and objects may be nested at most {MAX_DEPTH} deep");
        problems.push(FieldProblem::new("", message));
    }
    if problems.is_empty() { Ok(()) } else { Err(Invalid::Fields(problems)) }
}

fn is_deeper_than(depth: usize, value: &Value) -> bool {
    let Some(left) = depth.checked_sub(1) else {
        return value.is_array() || value.is_object();
    };
    match value {
        Value::Array(items) => items.iter().any(|item| is_deeper_than(left, item)),
        Value::Object(fields) => fields.values().any(|field| is_deeper_than(left, field)),
        _ => false,
    }
}

fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(has_nul),
        Value::Object(fields) => {
            fields.iter().any(|(name, value)| name.contains('\0') || has_nul(value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sample::Sample;

    fn validate(config: &Value) -> Result<(), Invalid> {
        Kinds::new().with::<Sample>().validate("relay", config)
    }

    #[test]
    fn all_invalid_fields_are_reported_at_once() {
        let config = json!({
            "mode": "of",
            "penalty": {"first": -1},
            "rate_limit": {"enabled": 1, "events_per_minute": 0, "evnts_per_minute": 3},
            "a/b": 1,
        });
        let Err(Invalid::Fields(mut found)) = validate(&config) else { panic!() };
        found.sort_by(|one, other| one.pointer.cmp(&other.pointer));
        let found: Vec<_> =
            found.iter().map(|it| (it.pointer.as_str(), it.message.as_str())).collect();
        assert_eq!(
            found,
            [
                ("/a~1b", "is not a field of this section"),
                ("/mode", "must be one of: off, strict"),
                ("/penalty/first", "must be a whole number from 1 to 60"),
                ("/rate_limit/enabled", "must be true or false"),
                ("/rate_limit/events_per_minute", "must be a whole number from 1 to 1000000"),
                ("/rate_limit/evnts_per_minute", "is not a field of this section"),
            ]
        );
    }

    #[test]
    fn secrets_unknown_services_and_oversized_documents_are_refused() {
        let secret = json!({"note": {"api_key": "x"}, "mode": "bad"});
        assert_eq!(validate(&secret), Err(Invalid::Secrets(vec!["/note/api_key".to_owned()])));
        let unknown = Kinds::new().with::<Sample>().validate("trust", &json!({}));
        assert_eq!(unknown.unwrap_err().to_string(), "unknown service; known services: relay");
        let giant = json!({"note": "x".repeat(MAX_BYTES)});
        assert!(matches!(validate(&giant), Err(Invalid::TooLarge(_))));
        for nul in [json!({"note": ["a\0b"]}), json!({"note": {"a\0": []}})] {
            assert!(matches!(validate(&nul), Err(Invalid::Fields(_))), "{nul}");
        }
        let nested = |depth| {
            let note = (1..depth).fold(json!(1), |inner, _| json!([inner]));
            validate(&json!({ "note": note }))
        };
        assert_eq!(nested(MAX_DEPTH), Ok(()));
        let message = "lists and objects may be nested at most 64 deep";
        let refused = nested(MAX_DEPTH + 1).unwrap_err().to_string();
        assert!(refused.ends_with(message), "{refused}");
        assert_eq!(validate(&json!({"note": {"name": "n"}, "penalty": null})), Ok(()));
    }

    #[test]
    fn documents_of_unregistered_kinds_are_objects_without_secrets() {
        assert_eq!(validate_unregistered(&json!({"anything": [1]})), Ok(()));
        for wrong in [json!(1), json!(null), json!({"password": 1}), json!({"a": "\0"})] {
            assert!(validate_unregistered(&wrong).is_err(), "{wrong}");
        }
    }
}
