//! What packages contain besides the binary: its version, completions, manual and bill of materials.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

use headgate_testkit::{find_program, require};
use serde_json::Value;

use crate::harness::{failure, headgate, json, printed, run};

/// Features of this build, as `--version` lists them.
const FEATURES: &str = if cfg!(feature = "kafka-static") {
    "kafka, kafka-static"
} else if cfg!(feature = "kafka") {
    "kafka"
} else {
    "none"
};

#[test]
fn version_names_features_and_target() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(printed(&run(&["-V"], &[])), format!("headgate {version}\n"));
    let long = run(&["--version"], &[]);
    let lines: Vec<_> = printed(&long).lines().collect();
    let [first, features, target] = lines[..] else { panic!("{lines:?}") };
    assert!(first.starts_with(&format!("headgate {version} (")), "{first}");
    assert_eq!(features, format!("features: {FEATURES}"));
    assert!(target.starts_with(&format!("target: {}-", std::env::consts::ARCH)), "{target}");
}

/// Runs the completion script in bash, and returns the candidates for the last word.
fn complete_in_bash(bash: &Path, words: &[&str]) -> BTreeSet<String> {
    let script = r#"
        source <("$HEADGATE" completions bash)
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _headgate headgate "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let output = Command::new(bash)
        .args(["--norc", "-c", script, "bash"])
        .args(words)
        .env("HEADGATE", env!("CARGO_BIN_EXE_headgate"))
        .output()
        .unwrap();
    printed(&output).lines().map(ToOwned::to_owned).collect()
}

#[test]
fn bash_completes_commands_and_options() {
    let bash = require!(find_program("bash"));
    let complete = |words: &[&str]| complete_in_bash(&bash, words);
    assert_eq!(complete(&["headgate", "ru"]), ["rules", "run"].map(str::to_owned).into());
    assert!(complete(&["headgate", "rules", ""]).contains("apply"));
    assert!(complete(&["headgate", "serve", "--"]).contains("--config"));
}

#[test]
fn every_shell_has_completions() {
    for (shell, start) in [
        ("bash", "_headgate()"),
        ("zsh", "#compdef headgate"),
        ("fish", "complete -c headgate"),
        ("powershell", "Register-ArgumentCompleter"),
    ] {
        let output = run(&["completions", shell], &[]);
        let script = printed(&output);
        assert!(script.contains(start), "{shell}: {script}");
        assert!(script.contains("fail-mode"), "{shell} lacks an option of `rules create`");
    }
    assert!(failure(&run(&["completions", "dos"], &[])).contains("possible values: bash"));
}

#[test]
fn completions_end_quietly_if_nobody_reads_them() {
    let mut child = headgate(&["completions", "bash"], &[])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &[][..]));
}

#[test]
fn the_manual_has_a_page_for_each_command() {
    let folder = tempfile::tempdir().unwrap();
    // It creates the folder.
    let pages = folder.path().join("man/man1");
    printed(&run(&["manual", pages.to_str().unwrap()], &[]));
    let help = run(&["--help"], &[]);
    let commands = printed(&help).split_once("Commands:\n").unwrap().1;
    let commands = commands.lines().take_while(|line| !line.is_empty());
    let mut names: Vec<_> = commands.map(|line| line.split_whitespace().next().unwrap()).collect();
    names.retain(|name| *name != "help");
    assert!(names.contains(&"serve") && names.len() >= 14, "{names:?}");
    for name in names.into_iter().chain(["rules-apply", "config-reload"]) {
        let page = fs::read_to_string(pages.join(format!("headgate-{name}.1")));
        let page = page.unwrap_or_else(|error| panic!("headgate-{name}.1: {error}"));
        assert!(page.contains(&format!(".TH headgate-{name} 1")), "{page}");
    }
    assert!(fs::read_to_string(pages.join("headgate.1")).unwrap().contains("headgate\\-serve(1)"));
    assert!(!pages.join("headgate-manual.1").exists());
}

#[test]
fn an_unwritable_folder_for_the_manual_is_reported() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let folder = file.path().join("man");
    let output = run(&["manual", folder.to_str().unwrap()], &[]);
    assert!(failure(&output).starts_with("headgate: cannot write the output: "));
}

/// Runs `scripts/sbom` for this machine.
fn bill_of_materials(python: &Path, features: &str) -> Output {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/sbom");
    Command::new(python).arg(script).arg(format!("--features={features}")).output().unwrap()
}

fn strings<'a>(list: &'a Value, field: &str) -> BTreeSet<&'a str> {
    list.as_array().unwrap().iter().map(|entry| entry[field].as_str().unwrap()).collect()
}

#[test]
fn the_bill_of_materials_lists_what_is_linked() {
    let python = require!(find_program("python3"));
    let bill = json(&bill_of_materials(&python, "kafka-static"));
    assert_eq!((&bill["bomFormat"], &bill["specVersion"]), (&"CycloneDX".into(), &"1.6".into()));
    assert_eq!(bill["metadata"]["component"]["name"], "headgate");
    let components = &bill["components"];
    let names = strings(components, "name");
    for linked in ["headgate-server", "tokio", "ring", "rdkafka", "sqlite", "mimalloc", "openssl"] {
        assert!(names.contains(linked), "{linked} is missing");
    }
    // Needed by tests, at compile time, and on other systems.
    for other in ["proptest", "serde_derive", "protox", "windows-sys", "headgate-cli"] {
        assert!(!names.contains(other), "{other} is not in the binary");
    }
    for component in components.as_array().unwrap() {
        let foreign = component["purl"].is_string()
            && !component["name"].as_str().unwrap().starts_with("headgate");
        assert!(component["licenses"][0].is_object(), "{component}");
        assert!(!foreign || component["hashes"][0]["content"].is_string(), "{component}");
    }
    let mut known = strings(components, "bom-ref");
    known.insert(bill["metadata"]["component"]["bom-ref"].as_str().unwrap());
    for dependency in bill["dependencies"].as_array().unwrap() {
        for need in dependency["dependsOn"].as_array().unwrap() {
            assert!(known.contains(need.as_str().unwrap()), "{need} is not listed");
        }
    }
}

#[test]
fn the_bill_of_materials_follows_the_features() {
    let python = require!(find_program("python3"));
    let first = bill_of_materials(&python, "");
    let bill = json(&first);
    let names = strings(&bill["components"], "name");
    assert!(!names.contains("rdkafka") && !names.contains("openssl"), "{names:?}");
    // The same sources give the same bytes.
    assert_eq!(printed(&first), printed(&bill_of_materials(&python, "")));
}
