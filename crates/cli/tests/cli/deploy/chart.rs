//! The Helm chart and its two profiles.

use std::{fs, path::Path};

use headgate_testkit::{Helm, require};
use serde_json::{Value, json};

use super::{objects::Objects, path, yaml};
use crate::harness::{json as printed_json, run};

/// The values that a profile must have.
struct Profile {
    name: &'static str,
    image: &'static str,
    replicas: (i64, i64),
    cpu: i64,
    /// Path in Vault, key there, file name, and configuration key of each secret.
    secrets: &'static [(&'static str, &'static str, &'static str, &'static str)],
}

const RATELIMIT: Profile = Profile {
    name: "ratelimit",
    image: "harbor.internal.example.com/k1s0-system/ratelimit:0.1.0",
    replicas: (3, 10),
    cpu: 60,
    secrets: &[
        (
            "secret/data/k1s0/system/ratelimit/database",
            "password",
            "db-password",
            "database.password_file",
        ),
        (
            "secret/data/k1s0/system/ratelimit/redis",
            "password",
            "redis-password",
            "redis.password_file",
        ),
    ],
};

const QUOTA: Profile = Profile {
    name: "quota",
    image: "harbor.internal.example.com/k1s0-system/quota:0.1.0",
    replicas: (2, 5),
    cpu: 70,
    secrets: &[
        (
            "secret/data/k1s0/system/quota/database",
            "password",
            "database-password",
            "database.password_file",
        ),
        (
            "secret/data/k1s0/system/quota/redis",
            "password",
            "redis-password",
            "redis.password_file",
        ),
        ("secret/data/k1s0/system/kafka/sasl", "username", "kafka-username", "kafka.username_file"),
        ("secret/data/k1s0/system/kafka/sasl", "password", "kafka-password", "kafka.password_file"),
    ],
};

#[test]
fn profiles_pass_helm_lint() {
    let helm = require!(Helm::find());
    let chart = path("helm/headgate").display().to_string();
    for profile in [RATELIMIT, QUOTA] {
        let values = format!("{chart}/values-{}.yaml", profile.name);
        let output = helm.lint(&[chart.as_str(), "--strict", "--values", &values]);
        let output = output.unwrap_or_else(|output| panic!("{output}"));
        assert!(output.contains("1 chart(s) linted, 0 chart(s) failed"), "{output}");
    }
}

#[test]
fn profiles_set_image_scaling_and_services() {
    let helm = require!(Helm::find());
    for profile in [RATELIMIT, QUOTA] {
        let objects = Objects::of(&helm, profile.name, &[]);
        let pod = &objects.only("Deployment")["spec"]["template"];
        assert_eq!(pod["spec"]["containers"][0]["image"], profile.image);
        let scaling = &objects.only("HorizontalPodAutoscaler")["spec"];
        let (min, max) = profile.replicas;
        assert_eq!((&scaling["minReplicas"], &scaling["maxReplicas"]), (&json!(min), &json!(max)));
        let cpu = &scaling["metrics"][0]["resource"];
        assert_eq!(
            (&cpu["name"], &cpu["target"]["averageUtilization"]),
            (&json!("cpu"), &json!(profile.cpu))
        );
        let service = &objects.only("Service")["spec"];
        assert_eq!(service["type"], "ClusterIP");
        assert_eq!(
            (&service["ports"][0]["port"], &service["ports"][1]["port"]),
            (&json!(80), &json!(50051))
        );
        assert_eq!(objects.only("PodDisruptionBudget")["spec"]["minAvailable"], "50%");
        let values =
            yaml::document(&super::read(&format!("helm/headgate/values-{}.yaml", profile.name)));
        assert_eq!(values["replicaCount"], min);

        let config = yaml::document(&objects.config(profile.name));
        assert_eq!(config["redis"]["url"], "redis://redis.k1s0-system.svc.cluster.local:6379");
        assert_eq!(config["server"]["host"], "0.0.0.0");
    }
    let quota = yaml::document(&Objects::of(&helm, "quota", &[]).config("quota"));
    assert_eq!(quota["kafka"]["brokers"], json!(["kafka-0.messaging.svc.cluster.local:9093"]));
}

#[test]
fn vault_annotations_match_the_configuration() {
    let helm = require!(Helm::find());
    for profile in [RATELIMIT, QUOTA] {
        let objects = Objects::of(&helm, profile.name, &[]);
        let pod = &objects.only("Deployment")["spec"]["template"];
        let annotation = |name: &str| {
            pod["metadata"]["annotations"][format!("vault.hashicorp.com/{name}")].clone()
        };
        assert_eq!(
            (annotation("agent-inject"), annotation("role")),
            (json!("true"), json!("system"))
        );
        assert_eq!(pod["spec"]["automountServiceAccountToken"], true);
        let config = yaml::document(&objects.config(profile.name));
        for (vault, key, file, configured) in profile.secrets {
            assert_eq!(annotation(&format!("agent-inject-secret-{file}")), *vault);
            let template = annotation(&format!("agent-inject-template-{file}"));
            let expected = format!(
                "{{{{- with secret \"{vault}\" -}}}}{{{{ index .Data.data \"{key}\" }}}}{{{{- end -}}}}\n"
            );
            assert_eq!(template, expected);
            let pointer = format!("/{}", configured.replace('.', "/"));
            assert_eq!(config.pointer(&pointer), Some(&json!(format!("/vault/secrets/{file}"))));
        }
    }
}

/// The problems that `config check` finds, with secret files in `folder`.
fn problems(config: &str, folder: &Path) -> Vec<String> {
    let config = config.replace("/vault/secrets", &folder.display().to_string());
    let config = config.replace("/etc/headgate/secrets/db", &folder.display().to_string());
    let file = folder.join("config.yaml");
    fs::write(&file, config).unwrap();
    let output = run(&["config", "check", file.to_str().unwrap(), "--output", "json"], &[]);
    let result: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| printed_json(&output));
    let problems = result["problems"].as_array().expect("problems").iter();
    let problems = problems.map(|problem| problem.as_str().expect("a text").to_owned());
    // Images are built with Kafka; the tested binary may not be.
    problems.filter(|it| cfg!(feature = "kafka") || !it.contains("built without Kafka")).collect()
}

#[test]
fn the_server_accepts_every_key_of_the_profiles() {
    let helm = require!(Helm::find());
    for profile in [RATELIMIT, QUOTA] {
        let folder = tempfile::tempdir().unwrap();
        for (_, _, file, _) in profile.secrets {
            fs::write(folder.path().join(file), "hunter2-hunter2\n").unwrap();
        }
        let config = Objects::of(&helm, profile.name, &[]).config(profile.name);
        assert_eq!(problems(&config, folder.path()), Vec::<String>::new(), "{config}");
        // Proves that the check can fail.
        let misspelt = Objects::of(&helm, profile.name, &["--set", "config.server.prot=1"]);
        let problems = problems(&misspelt.config(profile.name), folder.path());
        assert!(problems.len() == 1 && problems[0].starts_with("server.prot "), "{problems:?}");
    }
}

#[test]
fn pods_run_with_least_privileges() {
    let helm = require!(Helm::find());
    let objects = Objects::of(&helm, "ratelimit", &[]);
    let pod = &objects.only("Deployment")["spec"]["template"]["spec"];
    let security = &pod["securityContext"];
    assert_eq!((&security["runAsNonRoot"], &security["runAsUser"]), (&json!(true), &json!(65532)));
    assert_eq!(security["seccompProfile"]["type"], "RuntimeDefault");
    let container = &pod["containers"][0];
    assert_eq!(
        container["securityContext"],
        json!({
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": { "drop": ["ALL"] },
        })
    );
    assert_eq!(container["livenessProbe"]["httpGet"]["path"], "/healthz");
    assert_eq!(container["readinessProbe"]["httpGet"]["path"], "/readyz");
    assert!(container["resources"]["limits"]["memory"].is_string());
    assert_eq!(objects.only("ServiceAccount")["automountServiceAccountToken"], false);
    assert_eq!(pod["serviceAccountName"], objects.only("ServiceAccount")["metadata"]["name"]);
}

#[test]
fn optional_objects_can_be_enabled() {
    let helm = require!(Helm::find());
    let plain = Objects::of(&helm, "ratelimit", &[]);
    for kind in ["NetworkPolicy", "ServiceMonitor", "PrometheusRule"] {
        assert!(!plain.has(kind), "{kind}");
    }
    let set = "networkPolicy.enabled=true,monitoring.serviceMonitor.enabled=true,\
               monitoring.prometheusRule.enabled=true,monitoring.dashboard.enabled=true,autoscaling.enabled=false";
    let all = Objects::of(&helm, "ratelimit", &["--set", set]);
    assert_eq!(all.only("Deployment")["spec"]["replicas"], 3);
    assert_eq!(all.only("ServiceMonitor")["spec"]["endpoints"][0]["path"], "/metrics");
    let rules = &all.only("PrometheusRule")["spec"];
    assert_eq!(rules, &yaml::document(&super::read("helm/headgate/files/alerts.yaml")));
    let dashboard =
        &all.named("ConfigMap", "ratelimit-headgate-dashboard")["data"]["headgate.json"];
    let dashboard: Value = serde_json::from_str(dashboard.as_str().unwrap()).unwrap();
    assert_eq!(dashboard["title"], "Headgate");
}

#[test]
fn kubernetes_secrets_can_replace_vault() {
    let helm = require!(Helm::find());
    let set = "vault.enabled=false,existingSecrets[0].name=db,existingSecrets[0].key=db-password,\
               existingSecrets[0].configKey=database.password_file,existingSecrets[1].name=db,\
               existingSecrets[1].key=redis-password,\
               existingSecrets[1].configKey=redis.password_file";
    let objects = Objects::of(&helm, "ratelimit", &["--set", set]);
    let pod = &objects.only("Deployment")["spec"]["template"]["spec"];
    assert_eq!(pod["automountServiceAccountToken"], false);
    assert_eq!(pod["volumes"][3]["secret"]["secretName"], "db");
    let folder = tempfile::tempdir().unwrap();
    for name in ["db-password", "redis-password"] {
        fs::write(folder.path().join(name), "hunter2").unwrap();
    }
    assert_eq!(problems(&objects.config("ratelimit"), folder.path()), Vec::<String>::new());
}

#[test]
fn commands_in_the_guide_render() {
    let helm = require!(Helm::find());
    let guide = fs::read_to_string(path("../docs/guides/kubernetes.md")).unwrap();
    let commands = guide.lines().filter_map(|line| {
        line.strip_prefix("helm install ").or_else(|| line.strip_prefix("helm template "))
    });
    let commands: Vec<&str> = commands.collect();
    assert_eq!(commands.len(), 6, "{commands:?}");
    for command in commands {
        let folder = path("helm/headgate").display().to_string();
        let command = command.replace("deploy/helm/headgate", &folder);
        let arguments: Vec<&str> = command.split(' ').collect();
        let made = helm.template(&arguments).unwrap_or_else(|output| panic!("{command}: {output}"));
        assert!(made.contains("kind: Deployment"), "{command}");
    }
}

#[test]
fn two_secrets_of_vault_with_one_file_name_are_rejected() {
    let helm = require!(Helm::find());
    let chart = path("helm/headgate").display().to_string();
    let template = |files: [&str; 2]| {
        let secrets =
            files.map(|file| json!({"path": "secret/data/x", "key": "k", "mountPath": file}));
        let vault = format!("vault={}", json!({"enabled": true, "role": "r", "secrets": secrets}));
        let auth = "config.auth.mode=off";
        helm.template(&["x", chart.as_str(), "--set", auth, "--set-json", vault.as_str()])
    };
    for files in [["/a/password", "/b/password"], ["/a/password", "/a/password"]] {
        let output = template(files).expect_err("two secrets with one name");
        let expected = format!("{} and {} have the same file name", files[0], files[1]);
        assert!(output.contains(&expected), "{output}");
    }
    let output = template(["/a/password", "/b/secret"]).unwrap_or_else(|output| panic!("{output}"));
    assert!(output.contains("agent-inject-secret-password: \"secret/data/x\""), "{output}");
    assert!(output.contains("secret-volume-path-secret: \"/b\""), "{output}");
}

#[test]
fn invalid_values_are_rejected_with_a_message() {
    let helm = require!(Helm::find());
    let chart = path("helm/headgate").display().to_string();
    let off = "config.auth.mode=off";
    let cases: [(&[&str], &str); 6] = [
        (&[], "config.auth is required"),
        (&[off, "redis.enabled=true"], "redis.url is required"),
        (&[off, "kafka.enabled=true"], "kafka.brokers is required"),
        (&[off, "vault.enabled=true"], "vault.role is required"),
        (&[off, "replicaCounts=3"], "replicaCounts"),
        (&[off, "service.port=0"], "service/port"),
    ];
    for (set, expected) in cases {
        let mut arguments = vec!["x", chart.as_str()];
        for value in set {
            arguments.extend(["--set", value]);
        }
        let output = helm.template(&arguments).expect_err(expected);
        assert!(output.contains(expected), "{expected}: {output}");
    }
    let alone = helm
        .template(&["x", chart.as_str(), "--set", off])
        .unwrap_or_else(|output| panic!("{output}"));
    assert!(!alone.contains("PodDisruptionBudget"), "a single replica must stay evictable");
}
