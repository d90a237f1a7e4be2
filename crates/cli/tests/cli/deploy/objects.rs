//! Rendered Kubernetes objects and their consistency.

use headgate_testkit::Helm;
use serde_json::{Value, json};

use super::{path, yaml};

/// All objects of a release.
pub(super) struct Objects(Vec<Value>);

/// Kinds that the chart may render, with their API versions.
const KINDS: [(&str, &str); 9] = [
    ("apps/v1", "Deployment"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ("monitoring.coreos.com/v1", "PrometheusRule"),
    ("monitoring.coreos.com/v1", "ServiceMonitor"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("policy/v1", "PodDisruptionBudget"),
    ("v1", "ConfigMap"),
    ("v1", "Service"),
    ("v1", "ServiceAccount"),
];

// === impl Objects ===

impl Objects {
    /// Renders a release of this name with a profile's values and more arguments.
    pub(super) fn of(helm: &Helm, release: &str, more: &[&str]) -> Self {
        let chart = path("helm/headgate").display().to_string();
        let values = format!("{chart}/values-{release}.yaml");
        let arguments = [&[release, &chart, "--values", &values], more].concat();
        let text = helm.template(&arguments).unwrap_or_else(|output| panic!("{output}"));
        let objects = Self(yaml::documents(&text));
        objects.check();
        objects
    }

    /// The only object of this kind.
    pub(super) fn only(&self, kind: &str) -> &Value {
        let found: Vec<&Value> = self.0.iter().filter(|object| object["kind"] == kind).collect();
        assert_eq!(found.len(), 1, "{kind}");
        found[0]
    }

    pub(super) fn has(&self, kind: &str) -> bool {
        self.0.iter().any(|object| object["kind"] == kind)
    }

    pub(super) fn named(&self, kind: &str, name: &str) -> &Value {
        let mut objects = self.0.iter();
        let found = objects.find(|it| it["kind"] == kind && it["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("{kind} {name}"))
    }

    /// The server's configuration.
    pub(super) fn config(&self, release: &str) -> String {
        let map = self.named("ConfigMap", &format!("{release}-headgate"));
        map["data"]["config.yaml"].as_str().expect("a file").to_owned()
    }

    /// Checks what must hold for any values.
    fn check(&self) {
        for object in &self.0 {
            let (version, kind) = (&object["apiVersion"], &object["kind"]);
            assert!(KINDS.iter().any(|(v, k)| version == v && kind == k), "{version} {kind}");
            let labels = &object["metadata"]["labels"];
            assert_eq!(labels["app.kubernetes.io/name"], "headgate", "{kind}");
            assert_eq!(labels["app.kubernetes.io/managed-by"], "Helm", "{kind}");
        }
        let pods = &self.only("Deployment")["spec"]["template"];
        for selector in self.selectors() {
            let selected = selector.as_object().expect("labels");
            assert_eq!(selected.len(), 2, "{selected:?}");
            for (name, value) in selected {
                assert_eq!(&pods["metadata"]["labels"][name], value, "{name}");
            }
        }
        self.check_ports(&pods["spec"]["containers"][0]);
        check_mounts(&pods["spec"]);
    }

    /// All selectors of pods.
    fn selectors(&self) -> Vec<&Value> {
        let mut selectors = vec![
            &self.only("Deployment")["spec"]["selector"]["matchLabels"],
            &self.only("Service")["spec"]["selector"],
        ];
        for (kind, place) in [
            ("PodDisruptionBudget", "selector"),
            ("NetworkPolicy", "podSelector"),
            ("ServiceMonitor", "selector"),
        ] {
            if self.has(kind) {
                selectors.push(&self.only(kind)["spec"][place]["matchLabels"]);
            }
        }
        let spread =
            &self.only("Deployment")["spec"]["template"]["spec"]["topologySpreadConstraints"];
        let spread = spread.as_array().expect("a list").iter();
        selectors.extend(spread.map(|one| &one["labelSelector"]["matchLabels"]));
        selectors
    }

    /// Checks that named ports are ports of the container.
    fn check_ports(&self, container: &Value) {
        let named = |list: &Value, field: &str| -> Vec<Value> {
            list.as_array().expect("ports").iter().map(|port| port[field].clone()).collect()
        };
        let own = named(&container["ports"], "name");
        assert_eq!(own, [json!("http"), json!("grpc")]);
        assert_eq!(named(&self.only("Service")["spec"]["ports"], "targetPort"), own);
        for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
            assert_eq!(container[probe]["httpGet"]["port"], "http", "{probe}");
        }
        if self.has("HorizontalPodAutoscaler") {
            let target = &self.only("HorizontalPodAutoscaler")["spec"]["scaleTargetRef"];
            assert_eq!(target["name"], self.only("Deployment")["metadata"]["name"]);
            assert_eq!(self.only("Deployment")["spec"]["replicas"], Value::Null);
        }
    }
}

/// Checks that volumes and mounts correspond.
fn check_mounts(pod: &Value) {
    let names = |list: &Value| -> Vec<String> {
        let mut names: Vec<_> = list
            .as_array()
            .expect("a list")
            .iter()
            .map(|one| one["name"].as_str().expect("a name").to_owned())
            .collect();
        names.sort();
        names
    };
    let mounts = &pod["containers"][0]["volumeMounts"];
    assert_eq!(names(mounts), names(&pod["volumes"]));
    let paths = mounts.as_array().expect("a list").iter().map(|one| one["mountPath"].as_str());
    let mut paths: Vec<_> = paths.map(|path| path.expect("a path")).collect();
    paths.sort_unstable();
    let all = paths.len();
    paths.dedup();
    assert_eq!(paths.len(), all, "two volumes with one mount path: {paths:?}");
}
