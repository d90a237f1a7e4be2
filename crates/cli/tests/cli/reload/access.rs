//! Tokens that a reload adds and removes.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
};

use headgate_testkit::CertificateAuthority;

use super::*;
use crate::harness::failure;

const ROOT: &str = "root-secret-0123456789";
const CI: &str = "ci-secret-0123456789";

fn tokens(names: &[(&str, &str, &str)]) -> String {
    let tokens = names.iter().map(|(name, role, token)| {
        format!("    - {{name: {name}, role: {role}, token: {token}}}\n")
    });
    format!("auth:\n  tokens:\n{}", tokens.collect::<String>())
}

fn rules(server: &Reloadable, token: &str) -> u16 {
    let header = format!("authorization: Bearer {token}");
    status(&http(&server.server, "GET /api/v1/ratelimit/rules", &[&header], ""))
}

fn reload(server: &Reloadable, yaml: &str) {
    server.write(yaml);
    printed(&server.server.run(&["config", "reload", "--token", ROOT]));
}

#[test]
fn a_removed_token_is_refused_at_once_and_an_added_one_works() {
    let root = ("root", "sys_admin", ROOT);
    let server = Reloadable::start(&tokens(&[root, ("ci", "sys_operator", CI)]));
    assert_eq!((rules(&server, ROOT), rules(&server, CI)), (200, 200));
    // Only administrators may reload.
    let output = server.server.run(&["config", "reload", "--token", CI]);
    assert!(failure(&output).contains("PERMISSION_DENIED"), "{output:?}");

    let other = "other-secret-0123456789";
    reload(&server, &tokens(&[root, ("other", "sys_auditor", other)]));
    assert_eq!((rules(&server, CI), rules(&server, other)), (401, 200));
    let log = server.server.log();
    assert!(log.contains("applied auth.tokens") && !log.contains(other), "{log}");

    // Without tokens, the server generates its admin token; a dry run does not.
    server.write("{}");
    let file = server.server.folder().join("data/admin-token");
    printed(&server.server.run(&["config", "reload", "--dry-run", "--token", ROOT]));
    assert!(!file.exists());
    reload(&server, "{}");
    assert!(file.exists() && server.log_has("created the admin token"), "{}", server.server.log());
    assert_eq!((rules(&server, ROOT), rules(&server, other)), (401, 401));
    assert_eq!(server.server.run(&["rules", "list"]).status.code(), Some(0));
}

/// Opens an event stream, and reads its greeting.
fn stream(server: &Reloadable, token: &str) -> BufReader<TcpStream> {
    let address = server.server.url().trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let request = format!(
        "GET /api/v1/events/stream HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\
         authorization: Bearer {token}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while !line.starts_with("retry:") {
        line.clear();
        assert_ne!(stream.read_line(&mut line).unwrap(), 0, "no greeting");
    }
    stream
}

#[test]
fn event_streams_of_a_removed_token_end_and_others_go_on() {
    let root = ("root", "sys_admin", ROOT);
    let server = Reloadable::start(&tokens(&[root, ("ci", "sys_operator", CI)]));
    let (mut kept, mut ended) = (stream(&server, ROOT), stream(&server, CI));
    reload(&server, &tokens(&[root]));
    let mut rest = String::new();
    ended.read_to_string(&mut rest).unwrap();
    assert!(rest.ends_with("0\r\n\r\n"), "a proper end: {rest:?}");
    // The next heartbeat arrives.
    let mut line = String::new();
    while !line.starts_with(": still here") {
        line.clear();
        assert_ne!(kept.read_line(&mut line).unwrap(), 0, "the other stream has ended");
    }
}

/// Signs in to the console; returns the cookie.
fn sign_in(server: &Reloadable, token: &str) -> String {
    let headers = ["sec-fetch-site: same-origin", "x-headgate-console: 1"];
    let body = json!({ "token": token }).to_string();
    let answer = http(&server.server, "POST /console/session", &headers, &body);
    assert_eq!(status(&answer), 200, "{answer}");
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: "));
    cookie.expect("a cookie").to_owned()
}

fn reads_rules(server: &Reloadable, cookie: &str) -> u16 {
    let cookie = format!("cookie: {}", cookie.split(';').next().unwrap());
    let headers = [cookie.as_str(), "sec-fetch-site: same-origin", "x-headgate-console: 1"];
    status(&http(&server.server, "GET /api/v1/ratelimit/rules", &headers, ""))
}

/// Seconds that a cookie lasts.
fn max_age(cookie: &str) -> u64 {
    let age = cookie.split("Max-Age=").nth(1).and_then(|rest| rest.split(';').next());
    age.expect("an age").parse().unwrap()
}

#[test]
fn console_sessions_end_with_their_token() {
    let (root, ci) = (("root", "sys_admin", ROOT), ("ci", "sys_operator", CI));
    let server = Reloadable::start(&tokens(&[root, ci]));
    let (kept, ended) = (sign_in(&server, ROOT), sign_in(&server, CI));
    assert_eq!((reads_rules(&server, &kept), reads_rules(&server, &ended)), (200, 200));
    reload(&server, &tokens(&[root, ("ci", "sys_auditor", CI)]));
    assert_eq!((reads_rules(&server, &kept), reads_rules(&server, &ended)), (200, 401));

    // `console.session_ttl_seconds` holds for new sessions.
    assert!(max_age(&kept) > 60, "{kept}");
    reload(&server, &format!("{}console: {{session_ttl_seconds: 60}}\n", tokens(&[root])));
    let short = sign_in(&server, ROOT);
    assert!(max_age(&short) <= 60, "{short}");
    // `console.idle_timeout_seconds` holds for all.
    let idle = format!("{}console: {{idle_timeout_seconds: 1}}\n", tokens(&[root]));
    reload(&server, &idle);
    let is_over = || {
        thread::park_timeout(Duration::from_secs(2));
        reads_rules(&server, &kept) == 401
    };
    assert!(wait_until(LIMIT, is_over));
}

#[test]
fn changed_contents_of_an_authority_are_on_record() {
    let folder = tempfile::tempdir().unwrap();
    let [authority, other] = ["authority", "other"].map(CertificateAuthority::new);
    let ca_file = authority.write(folder.path());
    let root = tokens(&[("root", "sys_admin", ROOT)]);
    let issuer =
        format!("  jwks_url: https://127.0.0.1:1/certs\n  ca_file: {}\n", ca_file.display());
    let server = Reloadable::start(&(root + &issuer));
    let entries = || {
        let recorded = ["audit", "--action", "config.reload", "--token", ROOT];
        server.server.json(&recorded)["entries"].clone()
    };
    let reload = || printed(&server.server.run(&["config", "reload", "--token", ROOT])).to_owned();
    reload();
    assert_eq!(entries(), json!([]));
    other.write(folder.path());
    reload();
    reload();
    let recorded = entries();
    assert_eq!(recorded.as_array().unwrap().len(), 1, "{recorded}");
    assert_eq!(recorded[0]["after"], json!({"changed_files": [ca_file]}));
}
