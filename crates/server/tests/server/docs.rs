//! The documentation lists every key and every metric.

use std::{collections::BTreeSet, fs, path::Path};

use headgate_server::{Config, config::Effect};

fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The cells of every table row whose first cell is code.
fn rows(document: &str) -> Vec<Vec<&str>> {
    let rows = document.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

fn code(cell: &str) -> &str {
    cell.trim_matches('`')
}

/// The keys of a section, from the error message for an unknown one.
fn keys_of(section: &str) -> Vec<String> {
    let prefix = if section.is_empty() { String::new() } else { format!("{section}__") };
    let variable = format!("HEADGATE__{prefix}NO_SUCH_KEY").to_uppercase();
    let report = Config::load(None, [(variable, "x".to_owned())]).unwrap_err().to_string();
    let known = report.split("known here: ").nth(1).unwrap_or_default();
    known.split(", ").filter(|key| !key.is_empty()).map(str::to_owned).collect()
}

/// Adds `key`, or the keys of that section.
fn collect(key: &str, known: &mut BTreeSet<String>) {
    let inner = keys_of(&key.replace('.', "__"));
    if inner.is_empty() {
        known.insert(key.to_owned());
    }
    for name in inner {
        collect(&format!("{key}.{name}"), known);
    }
}

#[test]
fn every_key_is_documented_with_its_variable_and_default() {
    let document = document("configuration.md");
    let mut documented = BTreeSet::new();
    for row in rows(&document) {
        let [key, _, default, variable, live, ..] = row[..] else { panic!("{row:?}") };
        let (key, default, variable) = (code(key), code(default), code(variable));
        let applied = match Effect::of(key) {
            Effect::Live => "yes",
            Effect::Restart => "no",
        };
        assert_eq!(live, applied, "{key}");
        assert_eq!(variable, format!("HEADGATE__{}", key.to_uppercase().replace('.', "__")));
        if default != "none" {
            let given = [(variable.to_owned(), default.to_owned())];
            Config::load(None, given).unwrap_or_else(|error| panic!("{key}: {error}"));
        }
        documented.insert(key.to_owned());
    }
    let files = [
        "database.url_file",
        "database.password_file",
        "redis.url_file",
        "redis.urls_file",
        "redis.password_file",
        "redis.ca_file",
        "redis.cert_file",
        "redis.key_file",
        "kafka.username_file",
        "kafka.password_file",
    ];
    let mut known = BTreeSet::from(files.map(str::to_owned));
    for section in keys_of("") {
        let keys = keys_of(&section);
        if keys.is_empty() {
            // A list.
            known.insert(section.clone());
        }
        for key in keys {
            collect(&format!("{section}.{key}"), &mut known);
        }
    }
    assert_eq!(documented, known);
}

#[tokio::test]
async fn every_metric_is_documented() {
    let server = crate::envoy::asked().await;
    server.check_user("u1").await;
    let text = server.get("/metrics").await.text;
    let names = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let mut exported: BTreeSet<String> =
        names.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
    // Only a server with certificates has it.
    exported.insert("headgate_tls_certificate_expiry_seconds".to_owned());
    // Only the command writes a log.
    exported.insert("headgate_log_lines_dropped_total".to_owned());
    let operations = document("operations.md");
    let documented: BTreeSet<String> = rows(&operations)
        .iter()
        .map(|row| code(row[0]).to_owned())
        .filter(|name| {
            ["headgate_", "http_", "grpc_", "rate_limiter_", "kafka_", "db_", "process_"]
                .iter()
                .any(|own| name.starts_with(own))
        })
        .collect();
    assert_eq!(documented, exported);
}
