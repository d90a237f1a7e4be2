use std::path::Path;

use super::*;
use crate::YamlDocument;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a tree")]
struct Tree {
    size: Option<Bounded<1, 9>>,
    below: Vec<Tree>,
}

fn read(yaml: &str) -> (Option<Tree>, Vec<String>) {
    let document = YamlDocument::parse(Path::new("tree.yaml"), yaml).unwrap();
    let (tree, problems) = document.read_all();
    (tree, problems.iter().map(ToString::to_string).collect())
}

#[test]
fn every_mismatch_is_reported_and_the_rest_is_read() {
    let (tree, problems) = read(
        "\
size: 0
below:
  - {size: 3, colour: red}
  - leaf
  - below:
      - size: 10
      - size: 4
",
    );
    assert_eq!(
        problems,
        [
            "below[0].colour (tree.yaml:3): unknown key; known here: size, below",
            "below[1] (tree.yaml:4): expected a tree, got a text",
            "below[2].below[0].size (tree.yaml:6): expected a whole number from 1 to 9, got \"10\"",
            "size (tree.yaml:1): expected a whole number from 1 to 9, got \"0\"",
        ]
    );
    let tree = tree.unwrap();
    let size = |tree: &Tree| tree.size.map(Bounded::get);
    assert_eq!(tree.below.iter().map(size).collect::<Vec<_>>(), [Some(3), None, None]);
    assert_eq!(tree.below[2].below.iter().map(size).collect::<Vec<_>>(), [None, Some(4)]);
}

#[test]
fn nothing_is_read_from_another_type_or_with_too_many_mismatches() {
    let (tree, problems) = read("[1, 2]");
    assert!(tree.is_none());
    assert_eq!(problems, [". (tree.yaml:1): expected a tree, got a list"]);

    let (tree, problems) = read(&format!("below:\n{}", "  - size: 0\n".repeat(1000)));
    assert!(tree.is_none());
    assert_eq!(problems.len(), 50);
}

#[test]
fn a_missing_key_is_located_at_its_section() {
    let document =
        YamlDocument::parse(Path::new("tree.yaml"), "size: 1\nbelow:\n  - size: 2\n").unwrap();
    let problem = document.locate(Problem::new("below[0].name", "missing"));
    assert_eq!(problem.to_string(), "below[0].name (tree.yaml:3): missing");
    let empty = YamlDocument::parse(Path::new("tree.yaml"), "").unwrap();
    let problem = empty.locate(Problem::new("name", "missing"));
    assert_eq!(problem.to_string(), "tree.yaml: name: missing");
}

#[test]
fn problems_overlap_if_one_key_contains_the_other() {
    let overlaps = |a: &str, b: &str| Problem::new(a, "").overlaps(&Problem::new(b, ""));
    for (a, b) in [("a", "a"), ("a", "a.b"), ("a[0].b", "a"), ("a[1]", "a[1].c[0]")] {
        assert!(overlaps(a, b), "{a} {b}");
    }
    for (a, b) in [("a", "ab"), ("a[1]", "a[10]"), ("a.b", "a.c")] {
        assert!(!overlaps(a, b), "{a} {b}");
    }
}
