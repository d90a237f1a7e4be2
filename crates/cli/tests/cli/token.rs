//! In whose name the command asks.

use std::fs;

use crate::harness::{Server, failure, headgate, printed, stderr};

const SECRET: &str = "hg-this-is-a-secret";

fn admin_token(server: &Server) -> String {
    fs::read_to_string(server.folder().join("data/admin-token")).unwrap().trim().to_owned()
}

/// Lists rules from another folder, where no token lies about.
fn list(server: &Server, options: &[&str], variables: &[(&str, &str)]) -> std::process::Output {
    let elsewhere = tempfile::tempdir().unwrap();
    let arguments = [&["rules", "list", "--server", server.url()], options].concat();
    headgate(&arguments, variables).current_dir(&elsewhere).output().unwrap()
}

#[test]
fn where_the_server_keeps_its_token_it_is_found() {
    let server = Server::start(&[]);
    assert_eq!(printed(&server.run(&["rules", "list"])), "no rules\n");
}

#[test]
fn a_token_is_given_by_flag_or_variable_as_itself_or_as_a_file() {
    let server = Server::start(&[]);
    let token = admin_token(&server);
    let file = server.folder().join("data/admin-token");
    let file = file.to_str().unwrap();
    printed(&list(&server, &["--token", &token], &[]));
    printed(&list(&server, &["--token-file", file], &[]));
    printed(&list(&server, &[], &[("HEADGATE_TOKEN", &token)]));
    printed(&list(&server, &[], &[("HEADGATE_TOKEN_FILE", file)]));

    // What is typed comes first.
    printed(&list(&server, &["--token-file", file], &[("HEADGATE_TOKEN", SECRET)]));
    failure(&list(&server, &["--token", SECRET], &[("HEADGATE_TOKEN", &token)]));
    // A token that was given is used, even where the right one lies about.
    failure(&server.run(&["rules", "list", "--token", SECRET]));
}

#[test]
fn who_is_not_known_is_told_how_to_give_a_token() {
    let server = Server::start(&[]);
    let nobody = list(&server, &[], &[]);
    let told = failure(&nobody);
    assert!(told.contains("\n(SYS_AUTH_MISSING_TOKEN, request req_"), "{told}");
    assert!(
        told.contains("\nGive a token with --token-file or HEADGATE_TOKEN_FILE, or --token"),
        "{told}"
    );

    let wrong = list(&server, &["--token", SECRET], &[]);
    let told = failure(&wrong);
    assert!(told.contains("\n(SYS_AUTH_TOKEN_INVALID, request req_"), "{told}");
    assert!(told.contains("\nGive a token with ") && !told.contains(SECRET), "{told}");
}

#[test]
fn a_role_that_is_too_low_is_told_so() {
    let tokens = "[{name: ann, role: sys_auditor, token: ann-looks-at-rules}, \
                   {name: otto, role: sys_operator, token: otto-changes-rules}]";
    let server = Server::start(&[("HEADGATE__AUTH__TOKENS", tokens)]);
    let run = |token: &str, arguments: &[&str]| {
        server.run(&[&["rules"], arguments, &["--token", token]].concat())
    };
    let create = ["create", "--scope", "user", "--pattern", "*", "--limit", "1", "--window", "1h"];
    printed(&run("ann-looks-at-rules", &["list"]));
    let refused = run("ann-looks-at-rules", &create);
    let told = failure(&refused);
    assert!(told.contains("\n(SYS_AUTH_PERMISSION_DENIED, request req_"), "{told}");
    assert!(told.contains("\nThe token is known, but its roles do not allow this"), "{told}");
    assert!(!told.contains("ann-looks-at-rules"), "{told}");

    printed(&run("otto-changes-rules", &create));
    fs::write(server.folder().join("none.yaml"), "rules: []").unwrap();
    let prune = ["apply", "-f", "none.yaml", "--prune"];
    assert!(failure(&run("otto-changes-rules", &prune)).contains("SYS_AUTH_PERMISSION_DENIED"));
    assert!(printed(&run("otto-changes-rules", &["list"])).contains("user:*"));
}

#[test]
fn no_token_is_ever_shown() {
    let server = Server::start(&[]);
    let garbled = format!("{SECRET} {SECRET}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    fs::write(&file, &garbled).unwrap();
    let file = file.to_str().unwrap();

    for (options, variables, expected) in [
        (
            &["--token", garbled.as_str()][..],
            &[][..],
            "headgate: the token in --token is no token: ",
        ),
        (&["--token", ""], &[], "headgate: the token in --token is no token: "),
        (&["--token", SECRET, "--token-file", file], &[], "cannot be used with"),
        (&["--token", SECRET, "--toke", SECRET], &[], "unexpected argument '--toke'"),
        (
            &[],
            &[("HEADGATE_TOKEN", garbled.as_str())],
            "headgate: the token in HEADGATE_TOKEN is no token: ",
        ),
        (&["--token-file", file], &[], &format!("headgate: the token in {file} is no token: ")),
        (
            &[],
            &[("HEADGATE_TOKEN_FILE", "missing")],
            "headgate: cannot read the token in missing: No such file",
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
