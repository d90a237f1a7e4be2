//! Tells the binary what it is built from, for `headgate --version`.

use std::{env, fs, process::Command};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=HEADGATE_COMMIT");
    println!("cargo::rustc-env=HEADGATE_BUILD_COMMIT={}", commit());
    println!("cargo::rustc-env=HEADGATE_BUILD_FEATURES={}", features());
    println!("cargo::rustc-env=HEADGATE_BUILD_TARGET={}", env::var("TARGET").unwrap_or_default());
}

/// The commit of the sources: as given, of the package, or of the repository.
fn commit() -> String {
    let given = env::var("HEADGATE_COMMIT").ok().filter(|commit| !commit.is_empty());
    // A debug build has none: it would be linked again after every commit.
    let optimized = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let found = given.or_else(packaged).or_else(|| optimized.then(checked_out).flatten());
    found.unwrap_or_else(|| if optimized { "unknown commit" } else { "debug build" }.to_owned())
}

/// The commit that `cargo package` recorded.
fn packaged() -> Option<String> {
    let info = fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let hash = info.split("\"sha1\"").nth(1)?.split('"').nth(1)?;
    Some(hash.chars().take(12).collect())
}

/// The commit that is checked out.
fn checked_out() -> Option<String> {
    // A line is added to this file with every commit and checkout.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    println!("cargo::rerun-if-changed={log}");
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// The optional features that are enabled.
fn features() -> String {
    let names = env::vars().filter_map(|(name, _)| {
        let feature = name.strip_prefix("CARGO_FEATURE_")?;
        Some(feature.to_lowercase().replace('_', "-"))
    });
    let mut names: Vec<_> = names.collect();
    names.sort();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
