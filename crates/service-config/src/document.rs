//! A document as a service reads it from JSON.

use std::fmt::Debug;

use serde_json::Value;

use crate::{problem::FieldProblem, reader::Reader, schema::DocumentSchema, source::LoadError};

/// A service's document, with a value for every setting.
pub trait Document: Clone + Debug + Send + Sync + 'static {
    /// Name of the service.
    const SERVICE: &'static str;

    /// Revision of the fields; increment it whenever [`read`](Self::read) changes. During a rolling
    /// upgrade, an older program does not replace the schema that a newer one registered.
    const REVISION: u32 = 1;

    /// Reads the document; a missing field has its default.
    ///
    /// Reads the same fields whatever their values are: they are the document's schema.
    fn read(reader: &mut Reader<'_>) -> Self;

    /// Settings to use while no document is available: stricter than the defaults.
    fn safe_defaults(error: &LoadError) -> Self;
}

/// Reads a document that may have been written for a newer service: unknown fields are ignored.
pub fn read<D: Document>(config: &Value) -> Result<D, Vec<FieldProblem>> {
    let mut reader = Reader::new(Some(config));
    let document = D::read(&mut reader);
    let mut problems = reader.into_schema().problems(config);
    problems.retain(|problem| !problem.unknown);
    if problems.is_empty() { Ok(document) } else { Err(problems) }
}

/// Returns the document whose fields all have their defaults.
pub fn defaults<D: Document>() -> D {
    D::read(&mut Reader::default())
}

/// Returns the schema of a document.
pub fn schema<D: Document>() -> DocumentSchema {
    let mut reader = Reader::default();
    D::read(&mut reader);
    reader.into_schema()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sample::Sample;

    #[test]
    fn an_empty_document_has_the_defaults() {
        assert_eq!(read::<Sample>(&json!({})).unwrap(), defaults());
        assert_eq!(defaults::<Sample>().events_per_minute, 120);
    }

    #[test]
    fn a_running_service_ignores_unknown_fields_but_not_invalid_ones() {
        let newer = json!({"rate_limit": {"events_per_minute": 9, "zaps_per_minute": 3}});
        assert_eq!(read::<Sample>(&newer).unwrap().events_per_minute, 9);
        for wrong in [
            json!({"rate_limit": {"events_per_minute": 0}}),
            json!({"rate_limit": {"events_per_minute": null}}),
            json!({"rate_limit": null}),
            json!([]),
            json!(null),
            json!("relay"),
        ] {
            assert!(read::<Sample>(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_schema_does_not_depend_on_the_values() {
        let config = json!({"penalty": {"first": 3}, "mode": "strict"});
        let mut reader = Reader::new(Some(&config));
        Sample::read(&mut reader);
        assert_eq!(reader.into_schema(), schema::<Sample>());
    }
}
