//! Tokens of the command.

use std::fs;

use crate::harness::{Server, failure, headgate, printed, stderr};

const SECRET: &str = "hg-this-is-a-secret";

fn admin_token(server: &Server) -> String {
    fs::read_to_string(server.folder().join("data/admin-token")).unwrap().trim().to_owned()
}

/// Lists rules from a folder without a token file.
fn list(server: &Server, options: &[&str], variables: &[(&str, &str)]) -> std::process::Output {
    let elsewhere = tempfile::tempdir().unwrap();
    let arguments = [&["rules", "list", "--server", server.url()], options].concat();
    headgate(&arguments, variables).current_dir(&elsewhere).output().unwrap()
}

#[test]
fn finds_the_local_servers_admin_token() {
    let server = Server::start(&[]);
    assert_eq!(printed(&server.run(&["rules", "list"])), "no rules\n");
}

#[test]
fn accepts_tokens_and_token_files_by_flag_or_variable() {
    let server = Server::start(&[]);
    let token = admin_token(&server);
    let file = server.folder().join("data/admin-token");
    let file = file.to_str().unwrap();
    printed(&list(&server, &["--token", &token], &[]));
    printed(&list(&server, &["--token-file", file], &[]));
    printed(&list(&server, &[], &[("HEADGATE_TOKEN", &token)]));
    printed(&list(&server, &[], &[("HEADGATE_TOKEN_FILE", file)]));

    // Flags take precedence.
    printed(&list(&server, &["--token-file", file], &[("HEADGATE_TOKEN", SECRET)]));
    failure(&list(&server, &["--token", SECRET], &[("HEADGATE_TOKEN", &token)]));
    // An explicit token is used even if the admin token is at hand.
    failure(&server.run(&["rules", "list", "--token", SECRET]));
}

#[test]
fn unauthenticated_requests_get_a_hint() {
    let server = Server::start(&[]);
    let anonymous = list(&server, &[], &[]);
    let error = failure(&anonymous);
    assert!(error.contains("\n(SYS_AUTH_MISSING_TOKEN, request req_"), "{error}");
    assert!(
        error.contains("\nPass a token with --token-file or HEADGATE_TOKEN_FILE, or --token"),
        "{error}"
    );

    let wrong = list(&server, &["--token", SECRET], &[]);
    let error = failure(&wrong);
    assert!(error.contains("\n(SYS_AUTH_TOKEN_INVALID, request req_"), "{error}");
    assert!(error.contains("\nPass a token with ") && !error.contains(SECRET), "{error}");
}

#[test]
fn insufficient_roles_get_a_hint() {
    let tokens = "[{name: ann, role: sys_auditor, token: ann-looks-at-rules}, \
                   {name: otto, role: sys_operator, token: otto-changes-rules}]";
    let server = Server::start(&[("HEADGATE__AUTH__TOKENS", tokens)]);
    let run = |token: &str, arguments: &[&str]| {
        server.run(&[&["rules"], arguments, &["--token", token]].concat())
    };
    let create = ["create", "--scope", "user", "--pattern", "*", "--limit", "1", "--window", "1h"];
    printed(&run("ann-looks-at-rules", &["list"]));
    let refused = run("ann-looks-at-rules", &create);
    let error = failure(&refused);
    assert!(error.contains("\n(SYS_AUTH_PERMISSION_DENIED, request req_"), "{error}");
    assert!(error.contains("\nThe token is valid, but its role does not allow this"), "{error}");
    assert!(!error.contains("ann-looks-at-rules"), "{error}");

    printed(&run("otto-changes-rules", &create));
    fs::write(server.folder().join("none.yaml"), "rules: []").unwrap();
    let prune = ["apply", "-f", "none.yaml", "--prune"];
    assert!(failure(&run("otto-changes-rules", &prune)).contains("SYS_AUTH_PERMISSION_DENIED"));
    assert!(printed(&run("otto-changes-rules", &["list"])).contains("user:*"));
}

#[test]
fn tokens_are_never_printed() {
    let server = Server::start(&[]);
    let invalid = format!("{SECRET} {SECRET}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    fs::write(&file, &invalid).unwrap();
    let file = file.to_str().unwrap();

    for (options, variables, expected) in [
        (&["--token", invalid.as_str()][..], &[][..], "headgate: invalid token ("),
        (&["--token", ""], &[], ") in --token\n"),
        (&["--token", SECRET, "--token-file", file], &[], "cannot be used with"),
        (&["--token", SECRET, "--toke", SECRET], &[], "unexpected argument '--toke'"),
        (&[], &[("HEADGATE_TOKEN", invalid.as_str())], ") in HEADGATE_TOKEN\n"),
        (&["--token-file", file], &[], &format!(") in {file}\n")),
        (
            &[],
            &[("HEADGATE_TOKEN_FILE", "missing")],
            "headgate: cannot read the token file missing: No such file",
        ),
    ] {
        let output = list(&server, options, variables);
        assert!(failure(&output).contains(expected), "{output:?}");
        assert!(!stderr(&output).contains(SECRET), "{output:?}");
    }
    let help =
        headgate(&["rules", "list", "--help"], &[("HEADGATE_TOKEN", SECRET)]).output().unwrap();
    assert!(!printed(&help).contains(SECRET));
}
