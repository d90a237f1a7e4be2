//! Attributes on the command line.

use serde::{Serialize as _, Serializer};
use serde_json::{Map, Value};

/// Parses `name=value`.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE, such as tenant=acme".to_owned()),
    }
}

/// Returns the attributes as JSON: a name that is given several times has a list of values.
pub(crate) fn object(pairs: &[(String, String)]) -> Map<String, Value> {
    let mut attributes = Map::new();
    for (name, value) in pairs {
        let value = Value::from(value.as_str());
        match attributes.get_mut(name) {
            None => drop(attributes.insert(name.clone(), value)),
            Some(Value::Array(values)) => values.push(value),
            Some(one) => *one = Value::from(vec![one.take(), value]),
        }
    }
    attributes
}

/// Writes the attributes, for `#[serde(serialize_with)]`.
#[expect(clippy::ptr_arg, reason = "serde asks for a reference to the field")]
pub(crate) fn serialize<S: Serializer>(
    pairs: &Vec<(String, String)>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    object(pairs).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn repeated_names_are_lists() {
        let pairs = ["tenant=acme", "role=a", "role=b=c", "role="].map(|text| pair(text).unwrap());
        let expected = json!({"tenant": "acme", "role": ["a", "b=c", ""]});
        assert_eq!(Value::Object(object(&pairs)), expected);
        assert!(pair("tenant").is_err() && pair("=x").is_err());
    }
}
