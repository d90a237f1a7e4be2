//! A configuration that cannot be applied changes nothing.

use super::*;
use crate::harness::{failure, stderr};

/// Reloads a bad file, by the command and by SIGHUP, and returns what the command says.
fn refused(server: &Reloadable) -> String {
    let output = server.try_reload();
    let said = failure(&output).to_owned();
    let before = server.reloads_with("refused");
    server.server.send("-HUP");
    assert!(wait_until(LIMIT, || server.reloads_with("refused") > before));
    assert_eq!(server.metric("headgate_config_last_reload_successful"), "0");
    let warning = "warning: the last reload was refused; the log says why";
    assert_eq!(server.ready()["checks"]["config"], warning);
    said
}

/// Everything that a reload could have changed is as it was.
fn assert_unchanged(server: &Reloadable) {
    assert_eq!(server.limit(), 5);
    assert_eq!(server.reloads_with("applied"), 0);
    let audit = server.server.json(&["audit", "--action", "config.reload"]);
    assert_eq!(audit["entries"], json!([]));
}

#[test]
fn an_invalid_file_changes_nothing_and_says_where() {
    let server = Reloadable::start(&window(5));
    let path = server.folder.path().join("headgate.yaml");
    for (bad, expected) in [
        ("server: {prot: 1}\n", "server.prot (FILE:3): unknown key; known here: host, port"),
        ("auth:\n  tokens: [{name: a}]\n", "auth.tokens[0]"),
        ("quota: {reset_schedule: {daily: 0 0 31 2 *}}\n", "quota.reset_schedule.daily (FILE:3)"),
        ("server: [\n", "FILE:4"),
    ] {
        server.write(&format!("{}{bad}", window(9)));
        let said = refused(&server).replace(path.to_str().unwrap(), "FILE");
        assert!(said.contains(expected), "{said}");
        assert!(said.contains("invalid configuration; nothing was changed"), "{said}");
        assert!(said.contains("SYS_CONFIG_INVALID"), "{said}");
        let logged = server.server.log().replace(path.to_str().unwrap(), "FILE");
        assert!(logged.contains(expected), "{logged}");
        assert_unchanged(&server);
    }
    // As the start says it.
    server.write("server: {prot: 1}\n");
    let start = crate::harness::run(&["serve", "--config", path.to_str().unwrap()], &[]);
    let at_start = stderr(&start).lines().nth(1).unwrap().trim().to_owned();
    assert!(refused(&server).contains(&at_start), "{at_start}");

    assert_eq!(server.reload(&window(9)), ["rate_limiter.sliding_window.max_requests"]);
    assert!(server.ready()["checks"]["config"].is_null(), "a good file ends the warning");
}

#[test]
fn an_unreadable_file_changes_nothing() {
    let server = Reloadable::start(&window(5));
    fs::remove_file(server.folder.path().join("headgate.yaml")).unwrap();
    let said = refused(&server);
    assert!(said.contains("cannot read ") && said.contains("No such file"), "{said}");
    assert_unchanged(&server);
}

/// A file that is being written, or that a full disk cut off, would reset tokens and limits.
#[test]
fn an_empty_file_changes_nothing() {
    let server = Reloadable::start(&window(5));
    server.write("\n");
    let said = refused(&server);
    assert!(said.contains("headgate.yaml") && said.contains("it is empty"), "{said}");
    assert_unchanged(&server);

    let applied = server.reload("{}\n");
    assert_eq!(applied[0], "rate_limiter.sliding_window.max_requests");
}

#[test]
fn an_endless_file_changes_nothing() {
    let server = Reloadable::start(&window(5));
    let file = server.folder.path().join("headgate.yaml");
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
    let said = refused(&server);
    assert!(said.contains("it is larger than 16 MiB"), "{said}");
    let token = "{name: a, role: sys_admin, token_file: /dev/zero}";
    server.write(&format!("{}auth: {{tokens: [{token}]}}\n", window(9)));
    let said = refused(&server);
    assert!(said.contains("auth.tokens[0].token_file"), "{said}");
    assert_unchanged(&server);
}

#[test]
fn a_file_that_cannot_be_read_to_its_end_does_not_keep_the_server_from_stopping() {
    let mut server = Reloadable::start(&window(5));
    let file = server.folder.path().join("headgate.yaml");
    fs::remove_file(&file).unwrap();
    // As on a network file system that is gone: nothing is ever written.
    let made = std::process::Command::new("mkfifo").arg(&file).status().unwrap();
    assert!(made.success());
    server.server.send("-HUP");
    assert!(wait_until(LIMIT, || server.log_has("SIGHUP: reloading")), "{}", server.server.log());
    assert!(server.server.stop("-TERM").success());
}

#[test]
fn a_bad_envoy_folder_changes_nothing_else() {
    let domains = tempfile::tempdir().unwrap();
    fs::write(domains.path().join("a.yaml"), "domain: a\ndescriptors: []\n").unwrap();
    let yaml = |requests| {
        format!(
            "envoy: {{enabled: true, config_dir: {}, reload_interval_seconds: 3600}}\n{}",
            domains.path().display(),
            window(requests)
        )
    };
    let server = Reloadable::start(&yaml(5));
    server.write(&yaml(9));
    fs::write(domains.path().join("b.yaml"), "domain: b\ndescriptors: 7\n").unwrap();
    let said = refused(&server);
    assert!(said.contains("b.yaml:2"), "{said}");
    assert_unchanged(&server);

    fs::write(domains.path().join("b.yaml"), "domain: b\ndescriptors: []\n").unwrap();
    assert_eq!(server.reload(&yaml(9)), ["rate_limiter.sliding_window.max_requests"]);
    assert!(server.log_has("loaded Envoy configuration domains=2"), "{}", server.server.log());
}

#[test]
fn live_keys_that_need_a_restart_of_others_are_refused() {
    // The new file is valid, but with the address that is in force it would serve everyone.
    let exposed = "server: {host: 0.0.0.0}\nauth: {tokens: \
                   [{name: root, role: sys_admin, token: root-secret-0123456789}]}\n";
    let server = Reloadable::start(&format!("{exposed}{}", window(5)));
    server.write(&window(9));
    let arguments = ["config", "reload", "--token", "root-secret-0123456789"];
    let output = server.server.run(&arguments);
    let said = failure(&output);
    assert!(said.contains("restart the server to apply server.host: until then, "), "{said}");
    assert!(said.contains("nothing authenticates them"), "{said}");
    assert_eq!(server.limit(), 5);
    let list = server.server.run(&["rules", "list", "--token", "root-secret-0123456789"]);
    assert_eq!(list.status.code(), Some(0), "{list:?}");
}
