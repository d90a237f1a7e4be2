//! The modules of the server's crates depend on each other in one direction only.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Modules, the modules that each of them names, and a file that does so.
#[derive(Default)]
struct Graph(BTreeMap<String, BTreeMap<String, String>>);

/// A module's path, such as `["rest", "check"]`.
type ModulePath = Vec<String>;

/// The crates that the server was cut into.
const CRATES: [&str; 6] = ["api", "console", "grpc", "server", "stores", "telemetry"];

#[test]
fn modules_of_each_crate_have_no_cycles() {
    for name in CRATES {
        assert_acyclic(name, &[]);
    }
}

#[test]
fn modules_of_rest_have_no_cycles() {
    assert_acyclic("server", &["rest"]);
}

fn assert_acyclic(name: &str, parent: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
    let graph = Graph::read(&root, parent);
    assert!(graph.0.len() >= 5, "only {} modules found in {name}", graph.0.len());
    if let Some(cycle) = graph.cycle() {
        panic!("modules of {name} depend on each other in a circle:\n{}", cycle.join("\n"));
    }
}

#[test]
fn a_cycle_is_found_and_printed() {
    let mut graph = Graph::default();
    for (from, to) in
        [("app", "rest"), ("rest", "quotas"), ("quotas", "events"), ("events", "rest")]
    {
        graph.add(from, to, &format!("{from}.rs"));
    }
    let cycle = graph.cycle().expect("a cycle");
    assert_eq!(
        cycle,
        ["rest -> quotas (rest.rs)", "quotas -> events (quotas.rs)", "events -> rest (events.rs)"]
    );
    graph.0.remove("events");
    assert_eq!(graph.cycle(), None);
}

#[test]
fn paths_are_read_from_use_trees_and_expressions() {
    let source = "
        use std::sync::Arc; // crate::comment
        use crate::{auth::{Action, Role}, events::Events as Told, metrics};
        use super::json::{self, JsonBody};
        pub(in crate::rest) fn f() { let _ = \"crate::text\"; crate::stores::open::<u8>(self::g()) }
        #[cfg(test)]
        mod tests { use crate::app::App; }
    ";
    let from = ["rest".to_owned(), "check".to_owned()];
    let named: BTreeSet<String> = paths(source, &from).iter().map(|path| path.join("::")).collect();
    for expected in [
        "auth::Action",
        "auth::Role",
        "events::Events",
        "metrics",
        "rest::json",
        "rest::json::JsonBody",
        "stores::open",
        "rest::check::g",
    ] {
        assert!(named.contains(expected), "{expected} is not in {named:?}");
    }
    for unexpected in ["comment", "text", "app::App"] {
        assert!(!named.contains(unexpected), "{unexpected}");
    }
}

// === impl Graph ===

impl Graph {
    /// Reads the graph of the children of `parent`; of the top-level modules if that is empty.
    fn read(root: &Path, parent: &[&str]) -> Self {
        let mut graph = Self::default();
        for file in sources(root) {
            let relative = file.strip_prefix(root).expect("a file below the root");
            let module = module_path(relative);
            let text = fs::read_to_string(&file).expect("a source file");
            let Some(from) = child(&module, parent) else {
                continue;
            };
            graph.0.entry(from.to_owned()).or_default();
            for path in paths(&text, &module) {
                if let Some(to) = child(&path, parent).filter(|to| *to != from) {
                    graph.add(from, to, &relative.display().to_string());
                }
            }
        }
        // Names of items are no modules.
        let modules: BTreeSet<String> = graph.0.keys().cloned().collect();
        for named in graph.0.values_mut() {
            named.retain(|to, _| modules.contains(to));
        }
        graph
    }

    fn add(&mut self, from: &str, to: &str, file: &str) {
        let named = self.0.entry(from.to_owned()).or_default();
        named.entry(to.to_owned()).or_insert_with(|| file.to_owned());
    }

    /// The steps of a cycle, if there is one.
    fn cycle(&self) -> Option<Vec<String>> {
        let mut done = BTreeSet::new();
        let found = self.0.keys().find_map(|start| self.walk(start, &mut Vec::new(), &mut done))?;
        let next = found.iter().skip(1).chain(found.first());
        let step = |(from, to): (&&str, &&str)| format!("{from} -> {to} ({})", self.0[*from][*to]);
        Some(found.iter().zip(next).map(step).collect())
    }

    /// Follows the modules that `module` names, depth first.
    fn walk<'a>(
        &'a self,
        module: &'a str,
        way: &mut Vec<&'a str>,
        done: &mut BTreeSet<&'a str>,
    ) -> Option<Vec<&'a str>> {
        if let Some(start) = way.iter().position(|earlier| *earlier == module) {
            return Some(way[start..].to_vec());
        }
        if done.contains(module) {
            return None;
        }
        way.push(module);
        let named = self.0.get(module).into_iter().flat_map(BTreeMap::keys);
        let found = named.into_iter().find_map(|next| self.walk(next, way, done));
        way.pop();
        done.insert(module);
        found
    }
}

/// The child of `parent` that `path` is in.
fn child<'a>(path: &'a [String], parent: &[&str]) -> Option<&'a str> {
    let rest = path.get(parent.len()..)?;
    (path[..parent.len()] == *parent).then_some(rest.first()?.as_str())
}

/// All source files but those of tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let is_source = path.extension().is_some_and(|extension| extension == "rs");
        match path.file_name().and_then(|name| name.to_str()) {
            Some("tests" | "tests.rs" | "lib.rs") | None => {}
            Some(_) if path.is_dir() => found.extend(sources(&path)),
            Some(_) if is_source => found.push(path),
            Some(_) => {}
        }
    }
    found
}

/// `rest/check.rs` is `rest::check`.
fn module_path(file: &Path) -> ModulePath {
    let names = file.with_extension("");
    names.iter().map(|name| name.to_string_lossy().into_owned()).collect()
}

/// The paths that begin with `crate`, `super` or `self` in a file of `module`, from the crate's
/// root.
fn paths(source: &str, module: &[String]) -> Vec<ModulePath> {
    // Tests may use whatever they like; they stand at the end of a file.
    let code = source.split("mod tests {").next().unwrap_or_default();
    let tokens = tokens(code);
    let mut found = Vec::new();
    for (place, token) in tokens.iter().enumerate() {
        let starts = place == 0 || tokens[place - 1] != "::";
        if starts && matches!(token.as_str(), "crate" | "super" | "self") {
            tree(&tokens, place, &[], module, &mut found);
        }
    }
    found
}

/// Reads a path or a tree of paths from `place` on; returns the place behind it.
fn tree(
    tokens: &[String],
    mut place: usize,
    prefix: &[String],
    module: &[String],
    found: &mut Vec<ModulePath>,
) -> usize {
    let mut path = prefix.to_vec();
    let token = |place: usize| tokens.get(place).map_or("", String::as_str);
    loop {
        match token(place) {
            "crate" => path.clear(),
            "self" if path.is_empty() => path = module.to_vec(),
            "self" => {}
            "super" if path.is_empty() => path = module[..module.len() - 1].to_vec(),
            "super" => drop(path.pop()),
            "{" => {
                place += 1;
                while !matches!(token(place), "}" | "") {
                    place = tree(tokens, place, &path, module, found);
                    if token(place) == "as" {
                        place += 2;
                    }
                    if token(place) == "," {
                        place += 1;
                    }
                }
                return place + 1;
            }
            name if name.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
                path.push(name.to_owned());
            }
            // `*`, `<` and whatever else ends a path.
            _ => {
                found.push(path);
                return place + 1;
            }
        }
        place += 1;
        if token(place) != "::" {
            found.push(path);
            return place;
        }
        place += 1;
    }
}

/// Names, `::` and single signs; without comments and texts.
fn tokens(code: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if first == '"' {
            text_length(rest)
        } else if first.is_alphanumeric() || first == '_' {
            rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        let token = &rest[..length];
        if !token.starts_with(['/', '"']) && !first.is_whitespace() {
            tokens.push(token.to_owned());
        }
        rest = &rest[length..];
    }
    tokens
}

/// The length of the text that `code` begins with, quotes included.
fn text_length(code: &str) -> usize {
    let mut escaped = false;
    for (place, byte) in code.bytes().enumerate().skip(1) {
        match byte {
            b'"' if !escaped => return place + 1,
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    code.len()
}
