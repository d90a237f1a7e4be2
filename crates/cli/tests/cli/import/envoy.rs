//! `headgate import envoy`

use std::fs;

use super::{folder, run};
use crate::harness::{failure, headgate, printed};

const ENVOY: &str = "\
domain: edge
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 3, name: users}
    descriptors:
      - key: path
        value: /a*
        shadow_mode: true
        rate_limit: {unit: hour, unit_multiplier: 2, requests_per_unit: 9, algorithm: token_bucket}
  - key: partner
    rate_limit: {unlimited: true}
  - key: banned
    rate_limit: {unit: day, requests_per_unit: 0, replaces: [{name: users}]}
  - key: host
    value: internal
  - key: host
    value: '*.example.com'
    share_threshold: true
    rate_limit: {unit: day, requests_per_unit: 7}
";

#[test]
fn prints_the_limits_of_an_envoyproxy_file() {
    let folder = folder("ratelimit.yaml", ENVOY);
    let expected = "\
DOMAIN  DESCRIPTOR          LIMIT           ALGORITHM     NOTES
edge    banned              0 (denies all)                replaces users
edge    host_*.example.com  7 per day       fixed_window  share threshold
edge    host_internal       none
edge    partner             unlimited
edge    user                3 per minute    fixed_window  name users
edge    user.path_/a*       9 per 2 hours   token_bucket  shadow mode
";
    assert_eq!(printed(&run(&folder, &["envoy", "ratelimit.yaml"])), expected);

    let output = run(&folder, &["envoy", "ratelimit.yaml", "--to", "domains"]);
    assert!(printed(&output).ends_with("wrote domains/edge.yaml\n"), "{output:?}");
    let file = folder.path().join("domains/edge.yaml");
    assert_eq!(fs::read_to_string(&file).unwrap(), ENVOY);
    let again = ["envoy", "ratelimit.yaml", "--to", "domains"];
    let error = "domains/edge.yaml already exists; pass --force to overwrite it, or choose another";
    let output = run(&folder, &again);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains(error), "{output:?}");
    printed(&run(&folder, &[&again[..], &["--force"]].concat()));
}

#[test]
fn errors_name_the_line() {
    let folder = folder("r.yaml", "domain: edge\ndescriptors:\n  - key: user\n    limit: 3\n");
    let output = run(&folder, &["envoy", "r.yaml"]);
    let stderr = failure(&output);
    assert!(stderr.contains("descriptors[0].limit (r.yaml:4): unknown key"), "{stderr}");
    assert!(
        failure(&run(&folder, &["envoy", "missing.yaml"])).contains("cannot read missing.yaml")
    );
}

#[test]
fn every_mistake_of_a_file_is_reported() {
    let text = "\
descriptors:
  - kee: user
    rate_limit: {unit: fortnight, requests_per_unit: many}
  - just text
  - key: path
    descriptors:
      - key: a
        rate_limit: {requests_per_unit: 3}
      - {key: a}
";
    let folder = folder("r.yaml", text);
    let output = run(&folder, &["envoy", "r.yaml"]);
    let stderr = failure(&output);
    let expected = [
        "descriptors[0].kee (r.yaml:2): unknown key",
        "descriptors[0].key (r.yaml:2): missing",
        "descriptors[0].rate_limit.requests_per_unit (r.yaml:3): expected a whole number",
        "descriptors[0].rate_limit.unit (r.yaml:3): expected one of second",
        "descriptors[1] (r.yaml:4): expected a descriptor with its key, got a text",
        "descriptors[2].descriptors[0].rate_limit.unit (r.yaml:8): missing; expected one of second",
        "descriptors[2].descriptors[1] (r.yaml:9): duplicate key and value",
        "domain (r.yaml:1): missing",
    ];
    for problem in expected {
        assert!(stderr.contains(problem), "{problem}\n{stderr}");
    }
    let listed = stderr.lines().filter(|line| line.contains("r.yaml:")).count();
    assert_eq!(listed, expected.len(), "{stderr}");
}

#[test]
fn config_check_includes_envoy_files() {
    let folder = folder("r.yaml", "domain: edge\ndescriptors:\n  - key: user\n    limit: 3\n");
    let check = |yaml: &str| {
        fs::write(folder.path().join("headgate.yaml"), yaml).unwrap();
        headgate(&["config", "check", "headgate.yaml"], &[]).current_dir(&folder).output().unwrap()
    };
    let output = check("envoy:\n  enabled: true\n  config_file: r.yaml\n");
    assert!(failure(&output).contains("descriptors[0].limit (r.yaml:4)"), "{output:?}");
    printed(&check("envoy:\n  enabled: true\n  config_dir: /not/on/this/machine\n"));

    let domains = folder.path().join("domains");
    fs::create_dir(&domains).unwrap();
    fs::write(domains.join("a.yaml"), "domain: a\nlimits: []\n").unwrap();
    fs::write(domains.join("b.yaml"), "'''\n").unwrap();
    fs::write(domains.join("c.yaml"), "domain: c\n").unwrap();
    let output = check("envoy:\n  enabled: true\n  config_dir: domains\n");
    let stderr = failure(&output);
    for expected in ["limits (domains/a.yaml:2): unknown key", "domains/b.yaml:1:"] {
        assert!(stderr.contains(expected), "{expected}\n{stderr}");
    }
    assert!(!stderr.contains("c.yaml"), "{stderr}");
}

/// Configurations that envoyproxy/ratelimit accepts in its examples and tests.
const ACCEPTED: &[(&str, &[&str])] = &[
    ("domain: d\ndescriptors:\n", &[]),
    ("domain: d\ndescriptors:\n  - key: k\n    value: v\n", &["k_v none"]),
    (
        "domain: d\ndescriptors: [{key: k, rate_limit: {unit: WEEK, requests_per_unit: 2}}]\n",
        &["k 2 per week fixed_window"],
    ),
    (
        "domain: d\ndescriptors: [{key: k, rate_limit: {unlimited: true, requests_per_unit: 5}}]\n",
        &["k unlimited"],
    ),
    (
        "domain: d\ndescriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: 0}}]\n",
        &["k 0 (denies all)"],
    ),
    ("domain: d\ndescriptors: [{key: k, rate_limit: {unit: day}}]\n", &["k 0 (denies all)"]),
    (
        "domain: d
descriptors:
  - {key: k, value: '*.example.com', share_threshold: true, rate_limit: {unit: day, requests_per_unit: 1}}
  - {key: k, value: /a/*/b/*/c, rate_limit: {unit: day, requests_per_unit: 2}}
  - {key: k, value: /a/*, share_threshold: true}
",
        &[
            "k_*.example.com 1 per day fixed_window share threshold",
            "k_/a/* none share threshold",
            "k_/a/*/b/*/c 2 per day fixed_window",
        ],
    ),
    (
        "domain: d
descriptors:
  - key: k
    value: a
    quota_mode: true
    rate_limit: &limit {unit: day, requests_per_unit: 1}
    metadata: {service: {name: a, weight: 2}, list: [1, two]}
  - key: k
    value: b
    shadow_mode: true
    rate_limit: *limit
    metadata:
  - key: k
    value: c
    detailed_metric: true
    value_to_metric: true
    rate_limit: {<<: *limit, requests_per_unit: 3, name: n, replaces: [{name: m}]}
",
        &[
            "k_a 1 per day fixed_window quota mode",
            "k_b 1 per day fixed_window shadow mode",
            "k_c 3 per day fixed_window name n; replaces m",
        ],
    ),
];

#[test]
fn accepts_what_envoyproxy_accepts() {
    for (yaml, limits) in ACCEPTED {
        let folder = folder("r.yaml", yaml);
        let output = run(&folder, &["envoy", "r.yaml"]);
        let words = |line: &str| line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ");
        let shown: Vec<String> = printed(&output).lines().skip(1).map(words).collect();
        assert_eq!(shown, *limits, "{yaml}");
    }
}

/// Configurations that it rejects, and our errors.
const REJECTED: &[(&str, &str)] = &[
    ("'''\n", "r.yaml:1:"),
    ("descriptors: []\n", "domain (r.yaml:1): missing"),
    ("domain: \"\"\n", "domain (r.yaml:1): must not be empty"),
    ("0.25: d\n", "unknown key"),
    ("domain: d\ndescriptors: [a, b]\n", "expected a descriptor with its key"),
    ("domain: d\ndescriptors: [{key: \"\"}]\n", "descriptors[0].key (r.yaml:2): must not be empty"),
    ("domain: d\ndescriptors: [{key: k, ratelimit: {}}]\n", "unknown key"),
    ("domain: d\ndescriptors: [{key: k}, {key: k}]\n", "duplicate key and value"),
    (
        "domain: d\ndescriptors: [{key: k, value: a*}, {key: k, value: a*}]\n",
        "duplicate key and value",
    ),
    (
        "domain: d\ndescriptors: [{key: k, rate_limit: {unit: fortnight, requests_per_unit: 1}}]\n",
        "expected one of second, minute, hour, day, week, month, year",
    ),
    (
        "domain: d\ndescriptors: [{key: k, rate_limit: {unlimited: true, unit: day}}]\n",
        "an unlimited rate has no unit",
    ),
    (
        "domain: d\ndescriptors: [{key: k, value: v, share_threshold: true}]\n",
        "only a value with a wildcard (*) can share its threshold",
    ),
    (
        "domain: d\ndescriptors: [{key: k, rate_limit: {unit: day, replaces: [{name: \"\"}]}}]\n",
        "expected the name of another rate limit",
    ),
    (
        "domain: d\ndescriptors: [{key: k, rate_limit: {unit: day, name: n, replaces: [{name: n}]}}]\n",
        "a rate limit cannot replace itself",
    ),
];

#[test]
fn rejects_what_envoyproxy_rejects() {
    for (yaml, expected) in REJECTED {
        let folder = folder("r.yaml", yaml);
        let output = run(&folder, &["envoy", "r.yaml"]);
        let stderr = failure(&output);
        assert!(stderr.contains(expected), "{yaml}\n{stderr}");
    }
}
