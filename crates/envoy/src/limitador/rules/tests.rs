mod equivalence;

use std::{fs, sync::Arc};

use headgate_ratelimit::Selector;
use serde_json::json;

use super::*;
use crate::{Descriptor, Hits};

/// Converts limits of the namespace `shop`, each with these conditions and variables.
fn converted(limits: &[(&[&str], &[&str])]) -> RulesConversion {
    let limits: Vec<Json> = limits
        .iter()
        .map(|(conditions, variables)| {
            json!({"namespace": "shop", "max_value": 5, "seconds": 60, "conditions": conditions,
                "variables": variables})
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limits.yaml");
    fs::write(&path, json!(limits).to_string()).unwrap();
    convert_to_rules(&path).unwrap()
}

/// Returns the conditions of a limit's rule but the one on the domain.
fn when(conditions: &[&str]) -> Json {
    let conversion = converted(&[(conditions, &[])]);
    assert_eq!(conversion.skipped, [], "{conditions:?}");
    let lines = conversion.yaml.lines().skip_while(|line| *line != "    when:").skip(1);
    let lines = lines.take_while(|line| line.starts_with("      "));
    let fields: Vec<&str> = lines.map(str::trim).collect();
    let mut when: Json = serde_json::from_str(&format!("{{{}}}", fields.join(","))).unwrap();
    assert_eq!(when.as_object_mut().unwrap().remove("domain"), Some(json!("shop")));
    when
}

#[test]
fn conditions_become_when() {
    let one = |condition| when(&[condition]);
    assert_eq!(one("descriptors[0].method == 'POST'"), json!({"descriptor": 0, "method": "POST"}));
    assert_eq!(
        one("descriptors[1]['req.method'] != \"GET\""),
        json!({"descriptor": 1, "req.method": {"not": "GET"}})
    );
    for (condition, m) in [
        // Before CEL.
        ("m == 'GET'", json!("GET")),
        ("m == GET", json!("GET")),
        ("m == 5", json!("5")),
        ("m != ' /a b'", json!({"not": " /a b"})),
        // CEL.
        ("'GET' == m", json!("GET")),
        ("m in ['GET', \"PUT\"]", json!(["GET", "PUT"])),
        ("!(m in ['GET', 'PUT'])", json!({"not": ["GET", "PUT"]})),
        ("m == 'a' || m == 'b' || m.startsWith('c')", json!(["a", "b", "c*"])),
        ("!(m == 'a' || m == 'b')", json!({"not": ["a", "b"]})),
        ("m.startsWith('/v1/')", json!({"prefix": "/v1/"})),
        ("!m.startsWith('/v1/') && m != '/'", json!({"not": ["/v1/*", "/"]})),
        ("m.endsWith('.png')", json!({"suffix": ".png"})),
        ("m.contains('x')", json!({"glob": "*x*"})),
        ("m.startsWith('a') && m.endsWith('z')", json!({"prefix": "a", "suffix": "z"})),
        ("m.startsWith('a') && m.startsWith('ab')", json!({"prefix": "a", "regex": "ab(?s:.*)"})),
        ("m == 'a*'", json!({"equals": "a*"})),
        ("m != 'a*'", json!({"not": {"equals": "a*"}})),
        ("m in ['a*', 'b.c']", json!({"regex": "(?:a\\*|b\\.c)"})),
        ("m.matches('^/v[0-9]+/$')", json!({"regex": "/v[0-9]+/"})),
        ("matches(m, 'x')", json!({"regex": "(?s:.*)x(?s:.*)"})),
        ("m.matches(r'^a\\$')", json!({"regex": "a\\$(?s:.*)"})),
        ("m.matches('^a|b$')", json!({"regex": "(?s:.*)(?:^a|b$)(?s:.*)"})),
        ("!m.matches('^a$')", json!({"not": {"regex": "a"}})),
        ("has(m)", json!({"exists": true})),
        ("!has(m)", json!({"exists": false})),
        ("has(m) && m == 'a'", json!("a")),
        ("int(m) > 5 && int(m) <= 9", json!({"min": 6, "max": 9})),
        ("!(int(m) >= 5)", json!({"max": 4})),
        ("10 > int(m)", json!({"max": 9})),
        ("!!(m == 'a') && true", json!("a")),
        ("m == 'it\\'s \\u0041'", json!("it's A")),
    ] {
        assert_eq!(one(condition), json!({"m": m}), "{condition}");
    }
    assert_eq!(one("'m' in descriptors[0]"), json!({"descriptor": 0, "m": {"exists": true}}));
    assert_eq!(when(&["m != 'a'", "m != 'b'", "n == 'c'"]), {
        json!({"m": {"not": ["a", "b"]}, "n": "c"})
    });
    // A limit on all requests counts each once.
    assert_eq!(when(&[]), json!({"descriptor": 0}));
}

#[test]
fn all_problems_are_reported_with_their_reasons() {
    let table = [
        ("m == 'a' || n == 'b'", "would need several rules"),
        ("!(m == 'a' && n == 'b')", "would need several rules"),
        ("size(m) > 3", "size() cannot be compared with a number"),
        ("m.lowerAscii() == 'a'", "lowerAscii() cannot be compared with a string"),
        ("m < 'b'", "not by their order"),
        ("int(m) == 5", "only compared by their order"),
        ("descriptors[0].a == descriptors[0].b", "an entry cannot be compared with an entry"),
        ("descriptors[0].a == 5", "never equal to a number"),
        ("descriptors[0].a == 'x' && descriptors[1].b == 'y'", "this is another one than before"),
        ("descriptors[0].domain == 'x'", "the attribute domain is not an entry"),
        ("descriptors[0]['a:b'] == 'x'", "\"a:b\" is not the name of an attribute"),
        ("false", "never holds"),
        ("m", "an entry is not a condition"),
        ("m in []", "no value is in an empty list"),
        ("m in n", "between an entry and a list of strings only"),
        ("m == 'a' ? true : false", "unexpected ?"),
        ("m == 'a", "a string does not end"),
        ("m ==", "it ends too early"),
        ("(m == 'a'", ") is missing"),
        ("m == 'a' 'b'", "unexpected \"b\""),
        ("double(m) > 0.5", "numbers with a fraction"),
        ("m == 'a' && !has(m)", "to be there and to be missing"),
        ("m.matches('(')", "is not a regular expression"),
        ("descriptors.exists(d, d.m == 'a')", "exists() has no counterpart"),
    ];
    let conditions: Vec<[&str; 1]> = table.iter().map(|(condition, _)| [*condition]).collect();
    let limits: Vec<(&[&str], &[&str])> =
        conditions.iter().map(|conditions| (&conditions[..], &[][..])).collect();
    let conversion = converted(&limits);
    assert_eq!((conversion.rules, conversion.skipped.len()), (0, table.len()), "{conversion:#?}");
    for ((condition, reason), problem) in table.iter().zip(&conversion.skipped) {
        assert!(problem.message().contains(reason), "{condition}: {problem}");
    }
    let several = converted(&[(&["size(m) > 3", "m < 'b'"], &["size(m)", "'a'", "m"])]);
    let keys: Vec<&str> = several.skipped.iter().map(Problem::key).collect();
    let expected =
        ["[0].conditions[0]", "[0].conditions[1]", "[0].variables[0]", "[0].variables[1]"];
    assert_eq!(keys, expected);
    assert!(converted(&[(&[&"!".repeat(9000)], &[])]).skipped[0].message().contains("longer"));
    assert!(converted(&[(&[&"!".repeat(900)], &[])]).skipped[0].message().contains("deeply"));
}

/// Returns the selector of the only rule of a conversion.
fn selector(conversion: &RulesConversion) -> Arc<Selector> {
    let lines = conversion.yaml.lines().skip_while(|line| *line != "    when:").skip(1);
    let lines: Vec<&str> = lines.take_while(|line| line.starts_with("      ")).collect();
    let when = serde_json::from_str(&format!("{{{}}}", lines.join(","))).unwrap();
    let per = conversion.yaml.lines().find_map(|line| line.trim().strip_prefix("per: "));
    let per: Vec<String> = per.map(|per| serde_json::from_str(per).unwrap()).unwrap_or_default();
    let draft = Draft {
        name: Input::Given("n".to_owned()),
        limit: Input::Given(1),
        window_seconds: Input::Given(1),
        selector: SelectorDraft {
            when: Input::Given(when),
            per: Input::Given(per),
            ..SelectorDraft::default()
        },
        ..Draft::default()
    };
    draft.validate(None).unwrap().selector.unwrap()
}

/// Limitador's rules about entries that are missing, and about negations.
#[test]
fn rules_apply_where_limitador_applies_limits() {
    let applies = |conditions: &[&str], variables: &[&str], entries: &[(&str, &str)]| {
        let selector = selector(&converted(&[(conditions, variables)]));
        let (entries, hits) = (entries.to_vec(), Hits::Take(1));
        let descriptor = Descriptor { entries, hits, limit_override: None };
        selector.matches(&attributes::of("shop", 0, &descriptor).unwrap())
    };
    let post = "descriptors[0].m == 'POST'";
    assert!(applies(&[post], &[], &[("m", "POST"), ("other", "x")]));
    assert!(!applies(&[post], &[], &[("m", "GET")]));
    assert!(!applies(&[post], &[], &[("n", "POST")]));
    assert!(applies(&[post], &["descriptors[0].u"], &[("m", "POST"), ("u", "u1")]));
    assert!(!applies(&[post], &["descriptors[0].u"], &[("m", "POST")]));
    let not_post = "!(descriptors[0].m == 'POST')";
    assert!(applies(&[not_post], &[], &[("m", "GET")]));
    assert!(!applies(&[not_post], &[], &[("n", "GET")]));
    assert!(!applies(&["descriptors[1].m == 'POST'"], &[], &[("m", "POST")]));
    let found = "descriptors[0].m.matches('b+')";
    assert!(applies(&[found], &[], &[("m", "abbc")]));
    assert!(!applies(&[found], &[], &[("m", "ac")]));
    assert!(applies(&["descriptors[0].m.matches('^a|c$')"], &[], &[("m", "xc")]));
    assert!(!applies(&["descriptors[0].m.matches('^a|c$')"], &[], &[("m", "ca")]));
}

#[test]
fn names_are_unique_within_the_file() {
    let limit = |name| json!({"namespace": "a*b", "max_value": 1, "seconds": 1, "name": name});
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limits.yaml");
    let limits = json!([limit("x"), limit("x"), limit(""), limit("{x}")]);
    fs::write(&path, limits.to_string()).unwrap();
    let yaml = convert_to_rules(&path).unwrap().yaml;
    let names = yaml.lines().filter_map(|line| line.strip_prefix("  - name: "));
    assert_eq!(names.collect::<Vec<_>>(), ["\"a_b/x\"", "\"a_b/x 2\"", "\"a_b/2\"", "\"a_b/_x_\""]);
    assert!(yaml.contains("      \"domain\": {\"equals\":\"a*b\"}\n"), "{yaml}");
}
