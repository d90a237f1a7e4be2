//! Names of fields that no document may have: documents are shown, copied and written to the audit
//! log.

use serde_json::Value;

use crate::problem::escaped;

/// Parts of secrets' names, in lower case and without `_`, `-` and `.`.
const SECRET: [&str; 12] = [
    "accesskey",
    "apikey",
    "bearer",
    "credential",
    "mnemonic",
    "nsec",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "secret",
    "token",
];

/// Returns JSON pointers to the fields of `value` that are named like secrets.
pub fn find(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk(value, &mut String::new(), &mut found);
    found
}

fn walk(value: &Value, pointer: &mut String, found: &mut Vec<String>) {
    let length = pointer.len();
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                pointer.push('/');
                pointer.push_str(&escaped(name));
                if is_secret(name) {
                    found.push(pointer.clone());
                } else {
                    walk(value, pointer, found);
                }
                pointer.truncate(length);
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                pointer.push('/');
                pointer.push_str(&at.to_string());
                walk(value, pointer, found);
                pointer.truncate(length);
            }
        }
        _ => {}
    }
}

fn is_secret(name: &str) -> bool {
    let plain: String =
        name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    SECRET.iter().any(|secret| plain.contains(secret))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_found_by_name_at_any_depth() {
        let config = json!({
            "rate_limit": {"by_ip": 1, "API-Key": "x"},
            "list": [{"ok": 1}, {"a/b": {"clientSecret": {"deep": 1}}}],
            "Private_Key": null,
        });
        let mut found = find(&config);
        found.sort();
        assert_eq!(found, ["/Private_Key", "/list/1/a~1b/clientSecret", "/rate_limit/API-Key"]);
    }

    #[test]
    fn ordinary_field_names_are_not_secrets() {
        for name in ["by_pubkey", "event_by_pubkey", "ws_auth_timeout_seconds", "auth_per_minute"] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
