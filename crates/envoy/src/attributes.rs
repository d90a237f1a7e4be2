//! The entries of a descriptor as attributes, for rules.

use std::borrow::Cow;

use headgate_ratelimit::{
    AttributeError, AttributeValue, Attributes, Scope, attributes::identifier,
};

use crate::Descriptor;

/// The attribute with the domain of the request.
pub(crate) const DOMAIN: &str = "domain";

/// The attribute with the index of the descriptor in its request.
pub(crate) const DESCRIPTOR: &str = "descriptor";

/// The entry of Envoy with the address of the client, and the attribute with an address.
const REMOTE_ADDRESS: &str = "remote_address";
const ADDRESS: &str = "address";

/// Returns true if no entry can be this attribute: clients must not be able to choose its value.
pub(crate) fn is_reserved(name: &str) -> bool {
    matches!(name, DOMAIN | DESCRIPTOR)
}

/// Returns the attributes of the descriptor at `index` of a request. Entries whose key cannot be the
/// name of an attribute are left out: no rule can be about them.
///
/// # Errors
///
/// There are too many entries.
pub(crate) fn of<'a>(
    domain: &'a str,
    index: usize,
    descriptor: &Descriptor<'a>,
) -> Result<Attributes<'a>, AttributeError> {
    let mut attributes = Attributes::default();
    attributes.insert_unbounded(DOMAIN, domain)?;
    attributes.insert_unbounded(DESCRIPTOR, index as u64)?;
    let entries = &descriptor.entries;
    for (position, (key, _)) in entries.iter().enumerate() {
        let is_known = entries[..position].iter().any(|(other, _)| other == key);
        if is_known || is_reserved(key) || !Attributes::is_name(key) {
            continue;
        }
        attributes.insert_unbounded(*key, value(key, &entries[position..]))?;
    }
    if attributes.get(ADDRESS).is_none()
        && let Some(address) = attributes.get(REMOTE_ADDRESS).cloned()
    {
        attributes.insert_unbounded(ADDRESS, address)?;
    }
    Ok(attributes)
}

/// Returns the value of a key: a list, if the key occurs more than once.
fn value<'a>(key: &str, entries: &[(&'a str, &'a str)]) -> AttributeValue<'a> {
    let is_identifier = Scope::ALL.iter().any(|scope| scope.name() == key);
    let encoded = |value| {
        if is_identifier { identifier(Cow::Borrowed(value)) } else { Cow::Borrowed(value) }
    };
    let mut values = entries.iter().filter(|(other, _)| *other == key).map(|(_, it)| encoded(it));
    match (values.next(), values.next()) {
        (Some(first), Some(second)) => {
            AttributeValue::List([first, second].into_iter().chain(values).collect())
        }
        (first, _) => AttributeValue::Text(first.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use headgate::Key;

    use super::*;
    use crate::Hits;

    fn attributes<'a>(entries: &[(&'a str, &'a str)]) -> Result<Attributes<'a>, AttributeError> {
        let (entries, hits) = (entries.to_vec(), Hits::Take(1));
        of("edge", 3, &Descriptor { entries, hits, limit_override: None })
    }

    fn texts(attributes: &Attributes<'_>) -> Vec<String> {
        let text = |(name, value): (&str, &AttributeValue<'_>)| {
            format!("{name}={}", value.texts().collect::<Vec<_>>().join("+"))
        };
        attributes.iter().map(text).collect()
    }

    #[test]
    fn entries_are_attributes() {
        let entries = [
            ("path", "/a"),
            ("role", "x"),
            ("role", "y"),
            ("domain", "forged"),
            ("descriptor", "9"),
            ("no name", "z"),
            ("remote_address", "192.0.2.1"),
        ];
        let expected = [
            "domain=edge",
            "descriptor=3",
            "path=/a",
            "role=x+y",
            "remote_address=192.0.2.1",
            "address=192.0.2.1",
        ];
        assert_eq!(texts(&attributes(&entries).unwrap()), expected);
        let own = attributes(&[("address", "a"), ("remote_address", "b")]).unwrap();
        assert_eq!(own.get("address").unwrap().text(), Some("a"));
    }

    #[test]
    fn identifiers_are_valid_and_long_values_are_kept() {
        let long = "x".repeat(5000);
        for value in ["", "{", "\n", "a%{", &long] {
            let attributes = attributes(&[("user", value), ("path", value)]).unwrap();
            let user = attributes.get("user").unwrap().text().unwrap();
            assert!(Key::new(user).is_ok(), "{value} {user}");
            assert_eq!(attributes.get("path").unwrap().text(), Some(value));
        }
        let keys: Vec<String> = (0..33).map(|number| format!("k{number}")).collect();
        let many: Vec<(&str, &str)> = keys.iter().map(|key| (key.as_str(), "v")).collect();
        assert_eq!(attributes(&many).unwrap_err(), AttributeError::TooMany);
    }
}
