//! Source files of the crates and applications, by the paths of modules that documents name.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// All source files.
pub(super) struct Sources(Vec<Module>);

/// One file.
struct Module {
    /// Paths that it may be named by.
    names: Vec<Vec<String>>,
    words: BTreeSet<String>,
}

/// Names that the ledger explains at its beginning.
const SHORT_NAMES: [(&str, &str); 4] = [
    ("documents", "persistence::service_configs"),
    ("mem", "memory"),
    ("model", "headgate_store_conformance::model::tests"),
    ("service_config", "headgate_service_config"),
];

/// Modules that a macro makes: the tests of a file, on each backend.
const MADE_BY_MACRO: [&str; 2] = ["embedded", "postgres_and_redis"];

// === impl Sources ===

impl Sources {
    /// Reads files, whose paths are relative to `root`.
    pub(super) fn read(root: &Path, files: &[PathBuf]) -> Self {
        Self(files.iter().filter_map(|file| Module::read(root, file)).collect())
    }

    /// Returns `true` if there is such a test or module. `*` is any part of a name.
    pub(super) fn has(&self, name: &str) -> bool {
        let mut parts: Vec<&str> = name.split("::").collect();
        if let Some((_, long)) = SHORT_NAMES.iter().find(|(short, _)| *short == parts[0]) {
            parts.splice(..1, long.split("::"));
        }
        // A file names its submodules, but not their tests: the closest file has to have the test.
        let closest = self.0.iter().filter_map(|module| module.depth(&parts)).max();
        let any_module = parts[..parts.len() - 1].contains(&"*");
        let is_close = |name: &[String]| any_module || Some(name.len()) == closest;
        self.0.iter().any(|module| module.has(&parts, is_close))
    }
}

// === impl Module ===

impl Module {
    /// Returns the length of the longest name of this file that `parts` begin with, literally.
    fn depth(&self, parts: &[&str]) -> Option<usize> {
        let is_literal =
            |name: &&Vec<String>| name.iter().zip(parts).all(|(own, part)| own == part);
        let names = self.names.iter().filter(|name| name.len() <= parts.len());
        names.filter(is_literal).map(Vec::len).max()
    }

    /// Returns `true` if the parts begin with a name of this file that is close enough, and the
    /// others occur in it.
    fn has(&self, parts: &[&str], is_close: impl Fn(&[String]) -> bool) -> bool {
        self.names.iter().any(|name| {
            let begins = name.len() <= parts.len()
                && name.iter().zip(parts).all(|(own, part)| fits(own, part));
            begins && is_close(name) && parts[name.len()..].iter().all(|part| self.has_word(part))
        })
    }

    fn has_word(&self, part: &str) -> bool {
        MADE_BY_MACRO.contains(&part) || self.words.iter().any(|word| fits(word, part))
    }

    /// Reads a file such as `crates/serve/tests/serve/idle.rs`.
    fn read(root: &Path, file: &Path) -> Option<Self> {
        let text = fs::read_to_string(root.join(file)).unwrap();
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let file = file.with_extension("");
        let parts: Vec<&str> = file.iter().filter_map(|part| part.to_str()).collect();
        let [top, package, kind, within @ ..] = &parts[..] else { return None };
        let within = if let [folder @ .., "main" | "lib"] = within { folder } else { within };
        let library = library(&root.join(top).join(package).join("Cargo.toml"));
        let names = match (*kind, within) {
            ("src", within) => vec![join(&library, within)],
            // Tests are named by their target, by their crate, or by both.
            ("tests", [target, rest @ ..]) => vec![
                join(target, rest),
                join(package, rest),
                join(package, within),
                join(&library, within),
                join(&format!("{package}/tests/{target}"), rest),
            ],
            _ => return None,
        };
        Some(Self { names, words: words.map(str::to_owned).collect() })
    }
}

fn join(first: &str, rest: &[&str]) -> Vec<String> {
    [first].iter().chain(rest).map(|part| (*part).to_owned()).collect()
}

/// Name of the library of a manifest.
fn library(manifest: &Path) -> String {
    let text = fs::read_to_string(manifest).unwrap();
    let own = text.split("[lib]").nth(1).filter(|section| section.contains("name = "));
    let name = own.unwrap_or(&text).split("name = \"").nth(1).unwrap();
    name.split('"').next().unwrap().replace('-', "_")
}

/// Returns `true` if a name with at most one `*` fits a word.
fn fits(word: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => word == pattern,
        Some((start, end)) => {
            word.len() >= start.len() + end.len() && word.starts_with(start) && word.ends_with(end)
        }
    }
}

/// `a::{b, c}` as `a::b` and `a::c`.
pub(super) fn alternatives(name: &str) -> Vec<String> {
    let Some((start, rest)) = name.split_once('{') else { return vec![name.to_owned()] };
    let (inner, end) = rest.split_once('}').unwrap_or((rest, ""));
    let names = inner.split(',').map(|one| format!("{start}{}{end}", one.trim()));
    names.flat_map(|name| alternatives(&name)).collect()
}

#[test]
fn a_test_is_looked_for_in_its_module() {
    let files = ["cli/tests/cli/docs.rs", "cli/tests/cli/docs/sources.rs", "cli/tests/cli/main.rs"];
    let files = files.map(|file| Path::new("crates").join(file));
    let sources = Sources::read(&super::root(), &files);
    // In parts, because a name that is written here would be found here.
    let test = ["every_link", "leads_somewhere"].join("_");
    for module in ["cli::docs", "cli::*", "cli/tests/cli::docs"] {
        assert!(sources.has(&format!("{module}::{test}")), "{module}");
    }
    for module in ["cli", "cli::serve", "cli::docs::sources", "server::docs", "docs"] {
        assert!(!sources.has(&format!("{module}::{test}")), "{module}");
    }
    assert!(sources.has("cli::docs::*") && sources.has("cli::docs::every_link_*"));
    assert!(!sources.has("cli::doc::*") && !sources.has("cli::docs::no_link_leads_*"));
    assert_eq!(alternatives("a::{b, c}::d"), ["a::b::d", "a::c::d"]);
}
