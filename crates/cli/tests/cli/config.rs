//! `headgate config check|print`

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Server, failure, headgate, json, printed, stderr, stdout};

const SECRET: &str = "hunter2";

fn folder(yaml: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("headgate.yaml"), yaml).unwrap();
    folder
}

fn run(folder: &TempDir, arguments: &[&str], variables: &[(&str, &str)]) -> std::process::Output {
    let arguments = [&["config"], arguments].concat();
    headgate(&arguments, variables).current_dir(folder).output().unwrap()
}

#[test]
fn a_valid_file_passes_check() {
    let folder = folder("server:\n  port: 9000\n");
    assert_eq!(printed(&run(&folder, &["check", "headgate.yaml"], &[])), "headgate.yaml: ok\n");
    let checked = run(&folder, &["check", "headgate.yaml", "--output", "json"], &[]);
    assert_eq!(json(&checked), json!({ "valid": true, "problems": [] }));
}

#[test]
fn check_lists_all_problems() {
    let folder = folder("server:\n  prot: 1\nratelimit:\n  default_limit: many\n");
    let variables = [("HEADGATE__MEMORY__CAPACITY", "0")];
    let output = run(&folder, &["check", "headgate.yaml"], &variables);
    let lines: Vec<&str> = failure(&output).lines().collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert_eq!(lines[0], "headgate: invalid configuration:");
    assert!(
        lines[1]
            .starts_with("  memory.capacity (HEADGATE__MEMORY__CAPACITY): expected a whole number")
    );
    assert!(
        lines[2]
            .starts_with("  ratelimit.default_limit (headgate.yaml:4): expected a whole number")
    );
    assert!(
        lines[3]
            .starts_with("  server.prot (headgate.yaml:2): unknown key; known here: host, port, ")
    );

    let output = run(&folder, &["check", "headgate.yaml", "--output", "json"], &variables);
    assert_eq!(output.status.code(), Some(1));
    let checked: Value = serde_json::from_str(stdout(&output)).unwrap();
    let problems = lines[1..].iter().map(|line| line.trim()).collect::<Vec<_>>();
    assert_eq!(checked, json!({ "valid": false, "problems": problems }));

    let output = run(&folder, &["check", "missing.yaml"], &[]);
    assert_eq!(
        failure(&output),
        "headgate: cannot read missing.yaml: No such file or directory (os error 2)\n"
    );
    assert_eq!(
        failure(&run(&folder, &["print", "--config", "headgate.yaml"], &[])).lines().count(),
        3
    );
}

#[test]
fn print_shows_the_effective_configuration() {
    let folder =
        folder("app:\n  name: \"yes\"\nserver:\n  port: 9000\nratelimit:\n  fail_open: false\n");
    let variables = [("HEADGATE__SERVER__PORT", "9001"), ("CONFIG_PATH", "headgate.yaml")];
    let output = run(&folder, &["print"], &variables);
    let yaml = printed(&output);
    for expected in [
        "app:\n  name: \"yes\"\n",
        "\n  port: 9001\n",
        "\n  fail_open: false\n",
        "\n  default_limit: 100\n",
        "\n  log:\n    level: \"info\"\n",
    ] {
        assert!(yaml.contains(expected), "{expected}: {yaml}");
    }

    // The output can be read back.
    fs::write(folder.path().join("printed.yaml"), yaml).unwrap();
    let again = run(&folder, &["print", "--config", "printed.yaml"], &[]);
    assert_eq!(printed(&again), yaml);

    let values = json(&run(&folder, &["print", "--output", "json"], &variables));
    assert_eq!((&values["server"]["port"], &values["redis"]["url"]), (&json!(9001), &Value::Null));
}

#[test]
fn unknown_variables_are_warned_about() {
    let folder = folder("");
    let variables = [("HEADGATE_REDIS_URL", "redis://127.0.0.1:1"), ("HEADGATE_TOKEN", "t")];
    let output = run(&folder, &["check", "headgate.yaml"], &variables);
    assert_eq!(printed(&output), "headgate.yaml: ok\n");
    let expected = "headgate: warning: unknown variable HEADGATE_REDIS_URL; did you mean HEADGATE__REDIS__URL?\n";
    assert_eq!(stderr(&output), expected);

    let server = Server::start_with_log(&variables);
    let log = server.log();
    let warnings: Vec<&str> =
        log.lines().filter(|line| line.contains("unknown variable")).collect();
    assert!(warnings.len() == 1 && warnings[0].contains("HEADGATE__REDIS__URL"), "{log}");
}

#[test]
fn every_documented_key_is_printed() {
    let folder = folder("");
    let values = json(&run(&folder, &["print", "--output", "json"], &[]));
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    let docs = fs::read_to_string(docs).unwrap();
    // `_file` keys and aliases are printed under the key they set.
    let rows = docs.lines().filter(|line| !line.contains("| another name of "));
    let keys = rows.filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let keys: Vec<&str> = keys.filter(|key| key.contains('.') && !key.ends_with("_file")).collect();
    assert!(keys.len() > 10, "{keys:?}");
    for key in keys {
        let pointer = format!("/{}", key.replace('.', "/"));
        assert!(values.pointer(&pointer).is_some(), "{key}");
    }
}

#[test]
fn secrets_are_masked() {
    let folder = folder(&format!("redis:\n  url: redis://:{SECRET}@127.0.0.1:6379\n"));
    let output = run(&folder, &["print", "--config", "headgate.yaml"], &[]);
    assert!(printed(&output).contains("\n  url: \"***\"\n"), "{output:?}");
    assert!(!stdout(&output).contains(SECRET));

    let urls = format!("redis://:{SECRET}@127.0.0.1:1,redis://:{SECRET}@127.0.0.1:2");
    fs::write(folder.path().join("urls"), urls).unwrap();
    let variables = [("HEADGATE__REDIS__URLS_FILE", "urls")];
    let output = run(&folder, &["print"], &variables);
    assert!(printed(&output).contains("\n  urls:\n    - \"***\"\n    - \"***\"\n"), "{output:?}");
    let output = run(&folder, &["print", "--output", "json"], &variables);
    assert_eq!(json(&output)["redis"]["urls"], json!(["***", "***"]));

    let tokens = format!("[{{name: ci, role: sys_operator, token: {SECRET}-{SECRET}-{SECRET}}}]");
    let output = run(&folder, &["print"], &[("HEADGATE__AUTH__TOKENS", &tokens)]);
    let expected =
        "\n  tokens:\n    - name: \"ci\"\n      role: \"sys_operator\"\n      token: \"***\"\n";
    assert!(printed(&output).contains(expected), "{output:?}");
    assert!(!stdout(&output).contains(SECRET));

    for section in ["TRACE", "METRICS__OTLP"] {
        let key = format!("HEADGATE__OBSERVABILITY__{section}__ENDPOINT");
        let endpoint = format!("https://collector.example/v1?key={SECRET}");
        let output = run(&folder, &["print"], &[(&key, &endpoint)]);
        let expected = "\"https://collector.example/v1?***\"";
        assert!(printed(&output).contains(expected), "{output:?}");
        assert!(!stdout(&output).contains(SECRET));
    }

    let both = run(&folder, &["print", "--config", "headgate.yaml"], &variables);
    assert!(failure(&both).contains("redis.urls") && !stderr(&both).contains(SECRET), "{both:?}");
}
