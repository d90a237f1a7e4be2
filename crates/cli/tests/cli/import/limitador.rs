//! `headgate import limitador`

use std::fs;

use super::{folder, run};
use crate::harness::{Server, failure, printed};

const LIMITADOR: &str = "\
- namespace: toystore
  max_value: 10
  seconds: 60
  name: reads
  conditions:
    - \"descriptors[0].method == 'GET'\"
  variables:
    - descriptors[0].user_id
- namespace: toystore
  max_value: 5
  seconds: 90
  conditions: [\"method == \\\"POST\\\"\"]
  variables: [user_id]
- namespace: ../other
  max_value: 0
  seconds: 86400
  conditions: []
  variables: [\"descriptors[0]['ip']\"]
";

#[test]
fn limitador_namespaces_become_domains() {
    let folder = folder("limits.yaml", LIMITADOR);
    let output = run(&folder, &["limitador", "limits.yaml", "--to", "domains"]);
    assert_eq!(printed(&output), "wrote domains/_other.yaml\nwrote domains/toystore.yaml\n");
    let toystore = fs::read_to_string(folder.path().join("domains/toystore.yaml")).unwrap();
    let expected = "\
# Converted from limits of limitador. For each limit, let Envoy send a descriptor with these entries, in this order:
#   method \"GET\", user_id
#   method \"POST\", user_id
domain: \"toystore\"
descriptors:
  - key: \"method\"
    value: \"GET\"
    descriptors:
      - key: \"user_id\"
        rate_limit:
          name: \"reads\"
          unit: minute
          requests_per_unit: 10
  - key: \"method\"
    value: \"POST\"
    descriptors:
      - key: \"user_id\"
        rate_limit:
          unit: second
          unit_multiplier: 90
          requests_per_unit: 5
";
    assert_eq!(toystore, expected);
    let shown = run(&folder, &["envoy", "domains/toystore.yaml"]);
    assert!(printed(&shown).contains("method_POST.user_id  5 per 90 seconds"), "{shown:?}");
    let both = run(&folder, &["limitador", "limits.yaml"]);
    assert!(printed(&both).ends_with(&format!("---\n{expected}")), "{both:?}");
}

/// Like limitador's example: a limit on every request, and keys without a value.
const EXAMPLE: &str = "\
---
- namespace: shop
  max_value: 1000000
  seconds: 60
  conditions:
  variables:
- namespace: shop
  max_value: 5
  seconds: 60
  conditions:
    - \"descriptors[0]['req.method'] == 'POST'\"
  variables:
    - descriptors[0]['user_id']
";

#[test]
fn an_unconditional_limit_becomes_a_generic_key() {
    let folder = folder("limits.yaml", EXAMPLE);
    let output = run(&folder, &["limitador", "limits.yaml", "--to", "domains"]);
    assert_eq!(printed(&output), "wrote domains/shop.yaml\n");
    let shop = fs::read_to_string(folder.path().join("domains/shop.yaml")).unwrap();
    assert!(shop.contains("#   generic_key \"every_request\"\n"), "{shop}");
    let expected = "\
DOMAIN  DESCRIPTOR                 LIMIT               ALGORITHM     NOTES
shop    generic_key_every_request  1000000 per minute  fixed_window
shop    req.method_POST            none
shop    req.method_POST.user_id    5 per minute        fixed_window
";
    assert_eq!(printed(&run(&folder, &["envoy", "domains/shop.yaml"])), expected);
}

/// Like limitador's sandbox: one limit for all paths but one, and one for that path.
const SANDBOX: &str = "\
---
- namespace: shop
  max_value: 10
  seconds: 60
  conditions:
    - \"descriptors[0]['req.method'] == 'GET'\"
    - \"descriptors[0]['req.path'] != '/json'\"
  variables: []
- namespace: shop
  max_value: 5
  seconds: 60
  conditions:
    - \"descriptors[0]['req.method'] == 'POST'\"
    - \"descriptors[0]['req.path'] != '/json'\"
  variables: []
- namespace: shop
  max_value: 50000
  seconds: 10
  conditions:
    - \"descriptors[0]['req.method'] == 'GET'\"
    - \"descriptors[0]['req.path'] == '/json'\"
  variables: []
";

#[test]
fn an_inequality_becomes_a_wildcard_beside_the_excluded_value() {
    let folder = folder("limits.yaml", SANDBOX);
    let expected = "\
---
# Converted from limits of limitador. For each limit, let Envoy send a descriptor with these entries, in this order:
#   req.method \"GET\", req.path \"/json\"
#   req.method \"GET\", req.path (any but \"/json\")
#   req.method \"POST\", req.path (any but \"/json\")
domain: \"shop\"
descriptors:
  - key: \"req.method\"
    value: \"GET\"
    descriptors:
      - key: \"req.path\"
        value: \"/json\"
        rate_limit:
          unit: second
          unit_multiplier: 10
          requests_per_unit: 50000
      - key: \"req.path\"
        value: \"*\"
        share_threshold: true
        rate_limit:
          unit: minute
          requests_per_unit: 10
  - key: \"req.method\"
    value: \"POST\"
    descriptors:
      - key: \"req.path\"
        value: \"/json\"
      - key: \"req.path\"
        value: \"*\"
        share_threshold: true
        rate_limit:
          unit: minute
          requests_per_unit: 5
";
    assert_eq!(printed(&run(&folder, &["limitador", "limits.yaml"])), expected);
}

#[test]
fn conditions_on_one_key_are_one_entry() {
    let text = "\
- {namespace: a, max_value: 1, seconds: 1, conditions: [\"m != 'x'\", \"m != 'y'\"], variables: [m]}
- {namespace: a, max_value: 2, seconds: 1, conditions: [\"n != 'x'\", \"n == 'y'\"], variables: [n, m]}
";
    let folder = folder("limits.yaml", text);
    let output = run(&folder, &["limitador", "limits.yaml"]);
    let printed = printed(&output);
    assert!(printed.contains("#   m (any but \"x\", \"y\")\n#   n \"y\", m\n"), "{printed}");
    // `m` is a variable, too, so that each value is counted by itself.
    assert!(!printed.contains("share_threshold"), "{printed}");
}

/// Limits of which three can be converted.
const DIFFICULT: &str = "\
- {namespace: a, max_value: 1, seconds: 1, conditions: [\"method.startsWith('G')\"], variables: [u]}
- {namespace: a, max_value: 1, seconds: 1}
- {namespace: a, max_value: 1, seconds: 1, variables: [u]}
- {namespace: a, max_value: 100, seconds: 60, variables: [u]}
- {namespace: a, max_value: 1, seconds: 1, variables: [\"u.size() > 3\"]}
- {namespace: a, max_value: 1, seconds: 1, conditions: [\"u == 'u1'\"], variables: [v]}
- {namespace: a, max_value: 1, seconds: 1, conditions: [\"w != 'w1'\", \"w == 'w1'\"]}
- {namespace: b, max_value: 1, seconds: 1, conditions: [\"w > 1\"]}
- {namespace: a, max_value: 1, seconds: 1, conditions: [\"path == '/a*'\"]}
- {namespace: a, max_value: 9, seconds: 9, name: nine}
- {namespace: a, max_value: 1, seconds: 1, conditions: [\"descriptors[0].x == descriptors[0].y\"]}
";

const SKIPPED: [&str; 8] = [
    "[0].conditions[0] (limits.yaml:1): cannot convert \"method.startsWith('G')\"",
    "[3] (limits.yaml:4): a descriptor would match this limit and another one",
    "[4].variables[0] (limits.yaml:5): \"u.size() > 3\" is not the key of a descriptor",
    "[5] (limits.yaml:6): a descriptor would match this limit and another one",
    "[6].conditions[1] (limits.yaml:7): contradicts the conditions before it",
    "[7].conditions[0] (limits.yaml:8): cannot convert \"w > 1\"",
    "[8].conditions[0] (limits.yaml:9): cannot convert \"path == '/a*'\"",
    "[10].conditions[0] (limits.yaml:11): cannot convert \"descriptors[0].x == descriptors[0].y\"",
];

#[test]
fn lists_limits_that_cannot_be_converted() {
    let folder = folder("limits.yaml", DIFFICULT);
    let output = run(&folder, &["limitador", "limits.yaml"]);
    let stderr = failure(&output);
    assert!(stderr.contains("pass --partial to skip these"), "{stderr}");
    for expected in SKIPPED {
        assert!(stderr.contains(expected), "{expected}\n{stderr}");
    }
}

#[test]
fn a_partial_import_lists_what_it_skips() {
    let folder = folder("limits.yaml", DIFFICULT);
    let output = run(&folder, &["limitador", "limits.yaml", "--partial", "--to", "domains"]);
    assert_eq!(printed(&output), "wrote domains/a.yaml\n");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(stderr.lines().count(), SKIPPED.len(), "{stderr}");
    for expected in SKIPPED {
        assert!(stderr.contains(&format!("skipped: {expected}")), "{expected}\n{stderr}");
    }
    let shown = run(&folder, &["envoy", "domains/a.yaml"]);
    for rule in ["generic_key_every_request", "generic_key_nine", "u  "] {
        assert!(printed(&shown).contains(&format!("a       {rule}")), "{shown:?}");
    }

    let nothing = "- {namespace: b, max_value: 1, seconds: 1, conditions: [\"w > 1\"]}\n";
    fs::write(folder.path().join("limits.yaml"), nothing).unwrap();
    let output = run(&folder, &["limitador", "limits.yaml", "--partial"]);
    assert!(failure(&output).contains("cannot convert any limit"), "{output:?}");
}

/// Conditions as in limitador's documentation: before CEL and in CEL.
const CONDITIONS: &str = "\
- namespace: toystore
  max_value: 10
  seconds: 60
  name: writes
  conditions:
    - \"descriptors[0]['req.method'] in ['POST', 'PUT']\"
    - \"descriptors[0].path.startsWith('/v1/') && !descriptors[0].path.endsWith('/health')\"
  variables: [\"descriptors[0].user_id\"]
- {namespace: toystore, max_value: 100, seconds: 1, conditions: [\"plan != free\"]}
- {namespace: toystore, max_value: 7, seconds: 1, conditions: [\"a == '1' || b == '2'\"]}
- {namespace: toystore, max_value: 0, seconds: 1, variables: [\"size(u)\", u]}
";

const RULES: &str = "\
# Converted from limits of limitador. Apply with `headgate rules apply`. The conditions on domain and
# descriptor hold for requests of Envoy if `envoy.rules: true` is configured; remove them for checks
# over REST and gRPC that do not send these attributes.
rules:
  - name: \"toystore/writes\"
    when:
      \"domain\": \"toystore\"
      \"descriptor\": 0
      \"req.method\": [\"POST\",\"PUT\"]
      \"path\": {\"not\":{\"suffix\":\"/health\"},\"prefix\":\"/v1/\"}
    per: [\"user_id\"]
    limit: 10
    window_seconds: 60
    algorithm: fixed_window
  - name: \"toystore/1\"
    when:
      \"domain\": \"toystore\"
      \"plan\": {\"not\":\"free\"}
    limit: 100
    window_seconds: 1
    algorithm: fixed_window
";

#[test]
fn limits_of_limitador_become_rules() {
    let folder = folder("limits.yaml", CONDITIONS);
    let output = run(&folder, &["limitador", "limits.yaml", "--rules"]);
    let stderr = failure(&output);
    for expected in [
        "[2].conditions[0] (limits.yaml:10): cannot convert \"a == '1' || b == '2'\": || is",
        "[3].variables[0] (limits.yaml:11): cannot convert \"size(u)\": a rule counts by",
        "[3].max_value (limits.yaml:11): a rule admits at least 1 request",
    ] {
        assert!(stderr.contains(expected), "{expected}\n{stderr}");
    }
    let partial = ["limitador", "limits.yaml", "--rules", "--partial"];
    assert_eq!(printed(&run(&folder, &partial)), RULES);

    let server = Server::start(&[]);
    let to = server.folder().to_str().unwrap().to_owned();
    let output = run(&folder, &[&partial[..], &["--to", &to]].concat());
    assert_eq!(printed(&output), format!("wrote {to}/rules.yaml\n"));
    let applied = printed(&server.run(&["rules", "apply", "-f", "rules.yaml"])).to_owned();
    assert!(applied.ends_with("2 created, 0 updated, 0 deleted, 0 unchanged\n"), "{applied}");
    let check = ["check", "--attribute", "domain=toystore", "--attribute", "plan=pro"];
    assert!(printed(&server.run(&check)).contains("99"), "{check:?}");
}
