//! The environment of the process.

use std::{env, ffi::OsString};

use headgate_server::Config;
use serde_json::Value;

/// A variable that looks like ours, but sets nothing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct IgnoredVariable {
    pub(crate) name: String,
    /// The variable of the key with the most similar name.
    pub(crate) suggestion: Option<String>,
}

const PREFIX: &str = "HEADGATE_";

/// Variables of the command line.
const OPTIONS: [&str; 6] = [
    "HEADGATE_SERVER",
    "HEADGATE_TOKEN",
    "HEADGATE_TOKEN_FILE",
    "HEADGATE_CA_FILE",
    "HEADGATE_CLIENT_CERT",
    "HEADGATE_CLIENT_KEY",
];

/// Minimum similarity of a suggestion, from 0 to 1.
const SIMILAR: f64 = 0.8;

/// Returns the environment. Values that are not UTF-8 are converted lossily rather than skipped.
pub(crate) fn variables() -> impl Iterator<Item = (String, String)> {
    let text = |value: OsString| value.to_string_lossy().into_owned();
    env::vars_os().map(move |(name, value)| (text(name), text(value)))
}

/// Returns the variables that begin with `HEADGATE_` and are ignored, such as `HEADGATE_REDIS_URL`,
/// in which a second underscore is missing twice.
pub(crate) fn ignored_variables(config: &Config) -> Vec<IgnoredVariable> {
    let ignored = variables().filter(|(name, value)| is_ignored(name, value));
    let mut ignored: Vec<String> = ignored.map(|(name, _)| name).collect();
    ignored.sort();
    if ignored.is_empty() {
        return Vec::new();
    }
    let mut keys = Vec::new();
    if let Ok(values) = serde_json::to_value(config.printed()) {
        collect_keys(&values, "HEADGATE", &mut keys);
    }
    let suggest = |name: String| IgnoredVariable { suggestion: nearest(&name, &keys), name };
    ignored.into_iter().map(suggest).collect()
}

fn is_ignored(name: &str, value: &str) -> bool {
    let rest = name.strip_prefix(PREFIX);
    rest.is_some_and(|rest| !rest.starts_with('_'))
        && !OPTIONS.contains(&name)
        && !is_service_link(name, value)
}

/// Returns true for a variable that Kubernetes sets for a service, such as
/// `HEADGATE_SERVICE_HOST` for one that is called `headgate`.
fn is_service_link(name: &str, value: &str) -> bool {
    let is_number = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    name.ends_with("_SERVICE_HOST")
        || name.ends_with("_SERVICE_PORT")
        || name.contains("_SERVICE_PORT_")
        || name.split("_PORT_").skip(1).any(is_number)
        || (name.ends_with("_PORT") && value.contains("://"))
}

/// Collects the variables of all keys.
fn collect_keys(values: &Value, path: &str, keys: &mut Vec<String>) {
    match values {
        Value::Object(section) => {
            for (key, value) in section {
                collect_keys(value, &format!("{path}__{}", key.to_ascii_uppercase()), keys);
            }
        }
        _ => keys.push(path.to_owned()),
    }
}

fn nearest(name: &str, keys: &[String]) -> Option<String> {
    let plain = |text: &str| text.replace('_', "");
    let similarity = |key: &String| strsim::normalized_levenshtein(&plain(key), &plain(name));
    let best = keys.iter().max_by(|a, b| similarity(a).total_cmp(&similarity(b)))?;
    (similarity(best) >= SIMILAR).then(|| best.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn options_keys_and_service_links_are_not_ignored() {
        for (name, value) in [
            ("HEADGATE_SERVER", "http://localhost:8080"),
            ("HEADGATE__REDIS__URL", "redis://localhost"),
            ("HEADGATE_SERVICE_HOST", "10.0.0.1"),
            ("HEADGATE_SERVICE_PORT", "8080"),
            ("HEADGATE_GRPC_SERVICE_PORT_GRPC", "50051"),
            ("HEADGATE_PORT", "tcp://10.0.0.1:8080"),
            ("HEADGATE_PORT_8080_TCP", "tcp://10.0.0.1:8080"),
            ("HEADGATE_PORT_8080_TCP_ADDR", "10.0.0.1"),
            ("HEADGATES", ""),
            ("HOME", "/root"),
        ] {
            assert!(!is_ignored(name, value), "{name}");
        }
        for (name, value) in [
            ("HEADGATE_REDIS_URL", "redis://localhost"),
            ("HEADGATE_PORT", "8080"),
            ("HEADGATE_SERVICE_CONFIG", "x"),
        ] {
            assert!(is_ignored(name, value), "{name}");
        }
    }

    #[test]
    fn suggests_the_key_with_the_most_similar_name() {
        let mut keys = Vec::new();
        let values = json!({"redis": {"url": null, "urls": []}, "server": {"grpc_port": 1}});
        collect_keys(&values, "HEADGATE", &mut keys);
        let nearest = |name| nearest(name, &keys);
        assert_eq!(nearest("HEADGATE_REDIS_URL").as_deref(), Some("HEADGATE__REDIS__URL"));
        assert_eq!(
            nearest("HEADGATE_SERVER_GRCP_PORT").as_deref(),
            Some("HEADGATE__SERVER__GRPC_PORT")
        );
        assert_eq!(nearest("HEADGATE_X"), None);
    }
}
