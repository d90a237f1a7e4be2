//! The documentation holds together: links, anchors, and the paths and tests it names.

mod markdown;
mod sources;

use std::{
    collections::BTreeSet,
    fs,
    path::{Component, Path, PathBuf},
};

use markdown::Page;
use sources::{Sources, alternatives};

/// Pages that name tests.
const LEDGERS: [&str; 2] = ["docs/internal/conformance.md", "docs/faults.md"];

/// The repository, as links from outside it are written.
const REPOSITORY: &str = "https://github.com/headgate/headgate/";

/// Path of the Rust API on the docs site.
const RUST_API: &str = "docs/api/";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// All files below a folder, relative to the root, except build output and hidden files.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join(folder)).unwrap() {
        let name = entry.as_ref().unwrap().file_name().into_string().unwrap();
        let path = folder.join(&name);
        if entry.unwrap().file_type().unwrap().is_dir() {
            if !name.starts_with('.') && !["target", "node_modules", "data"].contains(&&*name) {
                found.extend(files(&path));
            }
        } else {
            found.push(path);
        }
    }
    found
}

fn pages() -> Vec<Page> {
    let paths = files(Path::new("")).into_iter();
    let markdown = paths.filter(|path| has_extension(path, &["md"]));
    markdown.map(|path| Page::read(&root(), path)).collect()
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    extensions.iter().any(|extension| path.extension().is_some_and(|end| end == *extension))
}

fn exists(path: &str) -> bool {
    root().join(path).exists()
}

/// `folder/../page.md` as `page.md`.
fn resolve(folder: &Path, link: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for component in folder.join(link).components() {
        match component {
            Component::ParentDir => assert!(path.pop(), "{link} leaves the repository"),
            other => path.push(other),
        }
    }
    path
}

/// Returns the problem of a broken link.
fn broken(page: &Page, link: &str) -> Option<&'static str> {
    if let Some(rest) = link.strip_prefix(REPOSITORY) {
        let path = rest.strip_prefix("blob/main/").or(rest.strip_prefix("tree/main/"))?;
        let path = path.split('#').next().unwrap_or_default();
        return (!exists(path)).then_some("no such file in the repository");
    }
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() {
        page.path.clone()
    } else {
        resolve(page.path.parent().unwrap(), path)
    };
    if page.path.starts_with("docs") && !target.starts_with("docs") {
        return Some("leaves the docs site: link to the repository by its URL");
    }
    let target = target.to_str().unwrap();
    if let Some(api) = target.strip_prefix(RUST_API) {
        let name = api.trim_end_matches("/index.html").replace('_', "-");
        let manifests =
            files(Path::new("crates")).into_iter().filter(|path| path.ends_with("Cargo.toml"));
        let named = |path: &PathBuf| {
            fs::read_to_string(root().join(path)).unwrap().contains(&format!("name = \"{name}\""))
        };
        return (!manifests.into_iter().any(|path| named(&path))).then_some("no such crate");
    }
    if !exists(target) {
        return Some("no such file");
    }
    let known = anchor.is_empty()
        || !has_extension(Path::new(target), &["md"])
        || Page::read(&root(), target.into()).anchors().contains(anchor);
    (!known).then_some("no such heading")
}

#[test]
fn every_link_leads_somewhere() {
    let mut dead = Vec::new();
    for page in pages() {
        for link in page.links() {
            if let Some(reason) = broken(&page, link) {
                dead.push(format!("{}: {link}: {reason}", page.path.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{}", dead.join("\n"));
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let summary = Page::read(&root(), "docs/SUMMARY.md".into());
    let listed: BTreeSet<_> =
        summary.links().into_iter().map(|link| Path::new("docs").join(link)).collect();
    let written: BTreeSet<_> = pages()
        .into_iter()
        .map(|page| page.path)
        .filter(|path| path.starts_with("docs") && *path != summary.path)
        .collect();
    assert_eq!(listed, written);
}

#[test]
fn every_path_that_is_named_exists() {
    let all = files(Path::new(""));
    let mut missing = Vec::new();
    for page in &pages() {
        for name in page.code().into_iter().filter(|name| names_source(name)) {
            let found = all.iter().any(|path| path.ends_with(name)) || is_folder(name);
            if !found {
                missing.push(format!("{}: {name}", page.path.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// Returns true if a piece of code is the path of a source file or folder of this repository.
fn names_source(code: &str) -> bool {
    let plain = code.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    let folder =
        ["crates/", "apps/", "bench/", "deploy/", "docs/", "plugins/", "proto/", "scripts/"]
            .iter()
            .any(|prefix| code.starts_with(prefix));
    let file = has_extension(Path::new(code), &["rs", "lua"]);
    plain && (folder || file || code.contains("/src/"))
}

/// Returns true if this is a folder of the root, or of a crate.
fn is_folder(name: &str) -> bool {
    ["", "crates/", "apps/"].iter().any(|parent| exists(&format!("{parent}{name}")))
}

#[test]
fn every_test_that_is_named_exists() {
    let mut files = [files(Path::new("crates")), files(Path::new("apps"))].concat();
    files.retain(|path| has_extension(path, &["rs"]));
    let sources = Sources::read(&root(), &files);
    let mut unknown = Vec::new();
    for ledger in LEDGERS {
        let page = Page::read(&root(), ledger.into());
        let names =
            page.code().into_iter().filter(|code| code.contains("::")).flat_map(alternatives);
        let tests = names.filter(|name| names_test(name) && !sources.has(name));
        unknown.extend(tests.map(|test| format!("{ledger}: {test}")));
    }
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
}

/// Returns true unless this is other code, a type, or the explanation of names.
fn names_test(name: &str) -> bool {
    let last = name.rsplit("::").next().unwrap_or_default();
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "_-/:*".contains(c));
    plain && !last.starts_with(char::is_uppercase) && name != "crate::file::test"
}
