//! `headgate overrides`, and limits by plan: the examples of the guide.

use std::fs;

use serde_json::json;

use crate::harness::{Server, failure, json, printed};

/// The rules of the guide: the first YAML after a heading.
fn example(heading: &str) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/rules.md");
    let guide = fs::read_to_string(path).unwrap();
    let (_, section) = guide.split_once(&format!("\n## {heading}\n")).unwrap();
    let (_, yaml) = section.split_once("```yaml\n").unwrap();
    format!("rules:\n{}", yaml.split_once("```").unwrap().0)
}

/// The limit of a check with attributes.
fn limit(server: &Server, attributes: &[&str]) -> u64 {
    let mut arguments = vec!["check", "--dry-run", "--output", "json"];
    arguments.extend(attributes.iter().flat_map(|attribute| ["--attribute", attribute]));
    json(&server.run(&arguments))["limit"].as_u64().unwrap()
}

#[test]
fn rules_of_the_guide_have_limits_by_plan() {
    let server = Server::start(&[]);
    let yaml = example("Limits by plan");
    let applied = server.run_with(&["rules", "apply", "-f", "-"], &yaml);
    let line = "+ attributes:api default 50, free 100, pro 1000 by plan/60s, when {}, per tenant, named \"api\"";
    assert_eq!(printed(&applied).lines().next(), Some(line));
    assert_eq!(limit(&server, &["tenant=a", "plan=pro"]), 1000);
    assert_eq!(limit(&server, &["tenant=a", "plan=free"]), 100);
    assert_eq!(limit(&server, &["tenant=a"]), 50);
    let why = server.run(&["explain", "--attribute", "tenant=a"]);
    let text = "all conditions hold; the check has no attribute plan: it has the default limit, 50";
    assert!(printed(&why).contains(text), "{why:?}");

    // What is exported can be applied, and a change of another field keeps the limits.
    let export = server.run(&["rules", "export"]);
    let same = server.run_with(&["rules", "apply", "-f", "-", "--prune"], printed(&export));
    assert_eq!(printed(&same), "nothing to change (1 unchanged)\n");
    let id = server.json(&["rules", "list"])["rules"][0]["id"].as_str().unwrap().to_owned();
    printed(&server.run(&["rules", "update", &id, "--priority", "5"]));
    assert_eq!(limit(&server, &["tenant=a", "plan=pro"]), 1000);
    printed(&server.run(&["rules", "update", &id, "--limit", "7"]));
    assert_eq!(limit(&server, &["tenant=a", "plan=pro"]), 7);

    let by_plan = r#"{"by": "plan", "free": 100, "pro": 1000, "default": 50}"#;
    let create =
        ["rules", "create", "--name", "web", "--per", "tenant", "--window", "60s", "--limit"];
    let created = server.run(&[&create[..], &[by_plan]].concat());
    assert!(printed(&created).contains("default 50, free 100, pro 1000 by plan"), "{created:?}");
    let invalid = server.run(&[&create[..], &["many"]].concat());
    assert!(failure(&invalid).contains("expected a number, or JSON such as"), "{invalid:?}");
    let wrong = yaml.replace("free: 100", "free: 0");
    let refused = server.run_with(&["rules", "apply", "-f", "-"], &wrong);
    assert!(failure(&refused).contains("limit.free must be greater than 0"), "{refused:?}");
}

#[test]
fn overrides_are_set_listed_and_deleted() {
    let server = Server::start(&[]);
    printed(&server.run_with(&["rules", "apply", "-f", "-"], &example("Limits by plan")));
    let rule = server.json(&["rules", "list"])["rules"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(printed(&server.run(&["overrides", "list"])), "no overrides\n");
    let set = ["overrides", "set", "--rule", &rule, "--subject", "tenant=acme", "--limit", "5000"];
    let created = server.json(&[&set[..], &["--for", "24h", "--reason", "launch"]].concat());
    assert_eq!((&created["limit"], &created["reason"]), (&json!(5000), &json!("launch")));
    assert!(created["until"].is_string() && created["active"] == true, "{created}");
    assert_eq!(limit(&server, &["tenant=acme", "plan=free"]), 5000);
    assert_eq!(limit(&server, &["tenant=other", "plan=free"]), 100);

    let replaced = server.json(&[&set[..], &["--until", "2999-12-01T00:00:00Z"]].concat());
    assert_eq!(
        (&replaced["id"], &replaced["until"]),
        (&created["id"], &json!("2999-12-01T00:00:00.000+00:00"))
    );
    let listed =
        server.run(&["overrides", "list", "--rule", &rule, "--search", "acme", "--active-only"]);
    let line = printed(&listed).lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>();
    assert_eq!(line[1..4], ["api", "tenant=acme", "5000"]);
    let why = server.run(&["explain", "--attribute", "tenant=acme"]);
    assert!(printed(&why).contains("an override of tenant=acme sets the limit to 5000"), "{why:?}");

    let id = created["id"].as_str().unwrap();
    assert!(printed(&server.run(&["overrides", "get", id])).contains("tenant=acme"));
    printed(&server.run(&["overrides", "delete", id]));
    assert_eq!(limit(&server, &["tenant=acme", "plan=free"]), 100);
    let gone = server.run(&["overrides", "get", id]);
    assert!(failure(&gone).contains("SYS_RATELIMIT_OVERRIDE_NOT_FOUND"), "{gone:?}");
    let past = server.run(&[&set[..], &["--until", "2020-01-01T00:00:00Z"]].concat());
    assert!(failure(&past).contains("until must be in the future"), "{past:?}");
}
