//! The compose file: mounted files exist, ports are published on loopback only, and the server
//! accepts its configuration.

use std::{fs, process::Stdio};

use serde_json::{Value, json};

use super::{path, read, yaml};
use crate::harness::{Server, headgate};

fn services() -> Value {
    yaml::document(&read("compose.yaml"))["services"].clone()
}

#[test]
fn services_have_health_checks_and_loopback_ports() {
    let services = services();
    let services = services.as_object().unwrap();
    let names: Vec<&str> = services.keys().map(String::as_str).collect();
    assert_eq!(names, ["grafana", "headgate", "kafka", "postgres", "prometheus", "redis"]);
    for (name, service) in services {
        assert!(service["healthcheck"]["test"].is_array(), "{name}");
        for port in service["ports"].as_array().into_iter().flatten() {
            assert!(port.as_str().unwrap().starts_with("127.0.0.1:"), "{name}: {port}");
        }
        for volume in service["volumes"].as_array().into_iter().flatten() {
            let source = volume.as_str().unwrap().split(':').next().unwrap();
            assert!(!source.starts_with('.') || path(source).is_file(), "{name}: {source}");
        }
        if let Some(needed) = service["depends_on"].as_object() {
            assert!(needed.keys().all(|other| services.contains_key(other)), "{name}");
        }
    }
}

#[test]
fn the_server_accepts_its_configuration() {
    let services = services();
    let variables = services["headgate"]["environment"].as_object().unwrap();
    let token = "0123456789abcdef0123456789abcdef";
    let filled: Vec<(String, String)> = variables
        .iter()
        .map(|(name, value)| {
            let value = value.as_str().unwrap();
            // Compose substitutes these.
            let (before, rest) = value.split_once("${").unwrap();
            let (_, after) = rest.rsplit_once('}').unwrap();
            let after = if name.ends_with("TOKENS") { "'}]" } else { after };
            (name.clone(), format!("{before}{token}{after}"))
        })
        .collect();
    let variables: Vec<(&str, &str)> =
        filled.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    let file = path("compose/headgate.yaml").display().to_string();
    let output = headgate(&["config", "check", &file], &variables).stderr(Stdio::piped()).output();
    let output = output.unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let problems: Vec<&str> = stderr
        .lines()
        .skip(1)
        .filter(|it| cfg!(feature = "kafka") || !it.contains("built without Kafka"))
        .collect();
    assert!(problems.is_empty() && stderr.lines().count() < 3, "{stderr}");
}

#[test]
fn the_health_check_runs_headgate_health() {
    let services = services();
    let watch = &services["headgate"]["healthcheck"];
    assert_eq!(watch["test"], json!(["CMD", "/usr/local/bin/headgate", "health"]));
    // Longer than the command's own timeout, so that the container's log has its message.
    assert_eq!(watch["timeout"], "3s");
    let server = Server::start(&[]);
    let command = watch["test"][2].as_str().unwrap();
    assert!(server.run(&[command]).status.success());
}

#[test]
fn prometheus_and_grafana_files_are_mounted() {
    let services = services();
    let prometheus = yaml::document(&read("compose/prometheus.yaml"));
    let mounted = services["prometheus"]["volumes"].to_string();
    assert!(mounted.contains(prometheus["rule_files"][0].as_str().unwrap()), "{mounted}");
    // The alert on failed scrapes names the job.
    assert_eq!(prometheus["scrape_configs"][0]["job_name"], "headgate");
    let dashboards = yaml::document(&read("compose/grafana/dashboards.yaml"));
    let folder = dashboards["providers"][0]["options"]["path"].as_str().unwrap();
    assert!(
        services["grafana"]["volumes"].to_string().contains(&format!("{folder}/headgate.json"))
    );
}

#[test]
fn the_image_context_includes_all_workspace_members() {
    let dockerfile = read("Dockerfile");
    assert!(dockerfile.contains("USER 65532:65532"));
    assert!(dockerfile.contains("\nFROM scratch\n"));
    let ignored = fs::read_to_string(path("../.dockerignore")).unwrap();
    let root = fs::read_to_string(path("../Cargo.toml")).unwrap();
    let members = root.lines().find(|line| line.starts_with("members")).unwrap();
    for folder in members.split('"').filter_map(|word| word.strip_suffix("/*")) {
        assert!(ignored.lines().any(|line| line == format!("!{folder}")), "{folder}");
    }
    assert!(ignored.lines().any(|line| line == "!proto"));
    for script in dockerfile.split_whitespace().filter(|word| word.starts_with("scripts/")) {
        assert!(ignored.lines().any(|line| line == format!("!{script}")), "{script}");
    }
}
