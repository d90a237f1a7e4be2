//! The quick start and the guides show the actual output of their commands.

use std::{env, fs, path::Path, process::Command};

use headgate_testkit::{Skip, find_program, require};

use crate::harness::Server;

/// A command and its output.
#[derive(Debug)]
struct Step {
    command: String,
    output: String,
}

/// The `$` lines of the console blocks, each with the lines that follow it.
fn steps(document: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut in_console = false;
    for line in document.lines() {
        match line.strip_prefix("$ ") {
            _ if line.starts_with("```") => in_console = line == "```console",
            Some(command) if in_console => {
                steps.push(Step { command: command.to_owned(), output: String::new() });
            }
            None if in_console => {
                let step = steps.last_mut().expect("a command before its output");
                step.output.push_str(line);
                step.output.push('\n');
            }
            _ => {}
        }
    }
    steps
}

/// Replaces words with four or more digits, which are times and ids that differ from run to run.
fn normalized(text: &str) -> String {
    let part_of_word = |c: char| c.is_ascii_alphanumeric() || "-:._+".contains(c);
    let mut normalized = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c| !part_of_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let digits = word.chars().filter(char::is_ascii_digit).count();
        normalized.push_str(if digits < 4 { word } else { "TIME" });
        let next = after.chars().next().map_or(0, char::len_utf8);
        normalized.push_str(&after[..next]);
        rest = &after[next..];
    }
    normalized
}

fn shell(command: &str, server: &Server) -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_headgate")).parent().expect("a folder");
    let path = env::var("PATH").unwrap_or_default();
    let address = server.url().trim_start_matches("http://");
    let output = Command::new("sh")
        .args(["-c", &command.replace("localhost:8080", address)])
        .env("PATH", format!("{}:{path}", binary.display()))
        .env("HEADGATE_SERVER", server.url())
        .current_dir(server.folder())
        .output()
        .expect("a shell");
    String::from_utf8(output.stdout).expect("a text")
}

fn curl() -> Result<(), Skip> {
    let found = Command::new("curl").arg("--version").output();
    let skip = |_| Skip { component: "curl".to_owned(), reason: "not on PATH".to_owned() };
    found.map(drop).map_err(skip)
}

#[test]
fn the_quick_start_shows_what_its_commands_print() {
    require!(curl());
    let page = page("quick-start");
    let (before, after) = page.split_once("start it again").expect("a second server");
    let limited = [
        ("HEADGATE__RATELIMIT__DEFAULT_LIMIT", "1"),
        ("HEADGATE__RATELIMIT__DEFAULT_WINDOW_SECONDS", "3600"),
    ];
    assert!(after.contains(&limited.map(|(name, value)| format!("{name}={value}")).join(" ")));

    prints_what_it_shows(before, &[]);
    prints_what_it_shows(after, &limited);
}

#[test]
fn the_language_model_guide_shows_what_its_commands_print() {
    require!(curl());
    require!(find_program("python3"));
    // No window ends while the commands run.
    let page = page("guides/language-model-gateway");
    let page = page.replace("window_seconds: 60", "window_seconds: 86400");
    prints_what_it_shows(&page, &[]);
}

#[test]
fn guides_show_what_their_commands_print() {
    require!(curl());
    for name in ["limit-an-api", "quotas"] {
        prints_what_it_shows(&page(&format!("guides/{name}")), &[]);
    }
}

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/{name}.md"));
    fs::read_to_string(path).unwrap()
}

/// Runs the commands of a page, with a server of its own, in order.
fn prints_what_it_shows(page: &str, variables: &[(&str, &str)]) {
    let server = Server::start(variables);
    if let Some((_, rest)) = page.split_once("```yaml\n") {
        let (rules, _) = rest.split_once("```").expect("the end of the file");
        fs::write(server.folder().join("rules.yaml"), rules).unwrap();
    }
    let program = "language-model-gateway.py";
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides").join(program);
    fs::copy(source, server.folder().join(program)).unwrap();
    let steps = steps(page);
    assert!(!steps.is_empty());
    for Step { command, output } in steps {
        let printed = shell(&command, &server);
        assert_eq!(normalized(printed.trim_end()), normalized(output.trim_end()), "{command}");
    }
}
