//! The dashboard and the alerts use only metrics that a server exports, with their labels.

use std::collections::{BTreeMap, BTreeSet};

use headgate_testkit::CertificateAuthority;
use serde_json::Value;

use super::{read, yaml};
use crate::harness::{Server, http};

/// Prefixes of our metrics.
const PREFIXES: [&str; 7] =
    ["headgate_", "http_", "grpc_", "kafka_", "rate_limiter_", "db_", "process_"];

/// Names of the exported metrics, including each series of a histogram.
fn exported() -> BTreeSet<String> {
    let domains = concat!(env!("CARGO_MANIFEST_DIR"), "/../server/tests/server/envoy/domains");
    let folder = tempfile::tempdir().expect("a folder");
    let certificate = CertificateAuthority::new("test").issue(&["localhost"]);
    let (cert, key) = certificate.write(folder.path(), "tls");
    let certificates = format!("[{{cert_file: {}, key_file: {}}}]", cert.display(), key.display());
    let server = Server::start(&[
        ("HEADGATE__ENVOY__ENABLED", "true"),
        ("HEADGATE__ENVOY__CONFIG_DIR", domains),
        ("HEADGATE__SERVER__GRPC_TLS__CERTIFICATES", &certificates),
    ]);
    let text = http(&server, "GET /metrics", &[], "");
    let mut names = BTreeSet::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').expect("a name and a kind");
        if kind == "histogram" {
            names.extend(["bucket", "sum", "count"].map(|series| format!("{name}_{series}")));
        } else {
            names.insert(name.to_owned());
        }
    }
    names
}

/// Words of an expression that may be metric names.
fn words(expression: &str) -> impl Iterator<Item = &str> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| PREFIXES.iter().any(|prefix| word.starts_with(prefix)) && !is_label(word))
}

/// `grpc_code`, `grpc_method` and `grpc_service` are labels.
fn is_label(word: &str) -> bool {
    matches!(word, "grpc_code" | "grpc_method" | "grpc_service")
}

/// Collects the strings under this key.
fn expressions(value: &Value, key: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field.as_str() {
                    Some(text) if name == key => found.push(text.to_owned()),
                    _ => expressions(field, key, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| expressions(item, key, found)),
        _ => {}
    }
}

fn dashboard() -> Value {
    serde_json::from_str(&read("helm/headgate/files/dashboard.json")).unwrap()
}

fn alerts() -> Value {
    yaml::document(&read("helm/headgate/files/alerts.yaml"))
}

#[test]
fn queried_metrics_are_exported_and_all_metrics_are_on_the_dashboard() {
    let exported = exported();
    let (mut shown, mut watched) = (Vec::new(), Vec::new());
    expressions(&dashboard(), "expr", &mut shown);
    expressions(&alerts(), "expr", &mut watched);
    assert!(shown.len() > 20 && watched.len() > 10);
    for expression in shown.iter().chain(&watched) {
        let names: Vec<&str> = words(expression).collect();
        assert!(!names.is_empty() || expression.starts_with("up{"), "{expression}");
        for name in names {
            assert!(exported.contains(name), "{name} in {expression}");
        }
    }
    // Every exported metric is on the dashboard.
    let used: BTreeSet<&str> = shown.iter().flat_map(|expression| words(expression)).collect();
    let base = |name: &str| {
        let series = ["_bucket", "_sum", "_count"];
        series.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name).to_owned()
    };
    let used: BTreeSet<String> = used.into_iter().map(base).collect();
    let unseen: Vec<String> =
        exported.iter().map(|name| base(name)).filter(|name| !used.contains(name)).collect();
    assert_eq!(unseen, Vec::<String>::new());
}

#[test]
fn queried_labels_are_documented() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    let labels_of: BTreeMap<&str, &str> = docs
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| `")?.split(" | ");
            Some((cells.next()?.trim_end_matches('`'), cells.nth(1)?))
        })
        .collect();
    let mut all = Vec::new();
    expressions(&dashboard(), "expr", &mut all);
    expressions(&alerts(), "expr", &mut all);
    for expression in &all {
        let Some((_, by)) = expression.split_once(" by (") else { continue };
        let name = words(expression).next().unwrap();
        let known = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|end| labels_of.get(name.strip_suffix(end)?));
        let known = known.or_else(|| labels_of.get(name)).unwrap_or_else(|| panic!("{name}"));
        for label in by.split(')').next().unwrap().split(", ") {
            let common = ["service", "le", "instance"].contains(&label);
            assert!(common || known.contains(&format!("`{label}`")), "{label} of {name}");
        }
    }
}

#[test]
fn alerts_have_a_severity_a_description_and_documentation() {
    let alerts = alerts();
    let rules = alerts["groups"][0]["rules"].as_array().unwrap();
    let names: BTreeSet<&str> = rules.iter().map(|rule| rule["alert"].as_str().unwrap()).collect();
    assert_eq!(names.len(), rules.len());
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    for rule in rules {
        let name = rule["alert"].as_str().unwrap();
        assert!(docs.contains(&format!("`{name}`")), "{name} is not in docs/operations.md");
        assert!(["warning", "critical"].contains(&rule["labels"]["severity"].as_str().unwrap()));
        assert!(
            rule["for"].is_string() && rule["annotations"]["description"].is_string(),
            "{name}"
        );
        // A summary may only name labels that the expression leaves.
        let summary = rule["annotations"]["summary"].as_str().unwrap();
        for label in summary.split("$labels.").skip(1).map(|rest| rest.split(' ').next().unwrap()) {
            let expression = rule["expr"].as_str().unwrap();
            let by = expression.split(" by (").nth(1).and_then(|rest| rest.split(')').next());
            let left = by.unwrap_or("instance, job").split(", ").any(|left| left == label);
            assert!(left, "{label} of {name}");
        }
    }
}
