//! The guide matches the code.

use std::{fs, path::PathBuf};

fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn read(path: &str) -> String {
    fs::read_to_string(repository(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Code without its indentation.
fn dedented(code: &str) -> String {
    code.lines().map(|line| line.trim().to_owned() + "\n").collect()
}

#[test]
fn the_code_in_the_guide_is_the_code_of_the_app() {
    let guide = read("docs/guides/cooldowns.md");
    let mut quoted = 0;
    for part in guide.split("```rust\n").skip(1) {
        let (code, _) = part.split_once("\n```").expect("the end of the code");
        let (source, code) = code.split_once('\n').expect("a line that names the file");
        let source = source.strip_prefix("// ").expect("the file that the code is in");
        let is_there = dedented(&read(source)).contains(&dedented(code));
        assert!(is_there, "{source} has no such code:\n{code}");
        quoted += 1;
    }
    assert!(quoted >= 3, "{quoted} pieces of code");
}

#[test]
fn every_variable_is_in_the_guide() {
    let guide = read("docs/guides/cooldowns.md");
    let mut variables = 0;
    for file in ["config.rs", "config/dynamodb.rs"] {
        let source = read(&format!("apps/posts/src/{file}"));
        for text in source.split('"').skip(1).step_by(2) {
            let is_name = text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
            if is_name
                && ["POSTS_", "DYNAMODB_", "AWS_"].iter().any(|p| text.starts_with(p) && text != *p)
            {
                assert!(guide.contains(&format!("`{text}`")), "{text} is not in the guide");
                variables += 1;
            }
        }
    }
    assert!(variables >= 12, "{variables} variables");
}
