//! The executable.

use std::{
    net::SocketAddr,
    process::{Output, Stdio},
    time::Duration,
};

use headgate_testkit::free_port;
use hyper::Request;
use tempfile::TempDir;
use tokio::{
    net::TcpListener,
    process::{Child, Command},
    time::timeout,
};

use crate::harness::send;

/// Generous: tests share few cores.
const PATIENCE: Duration = Duration::from_secs(120);

/// Starts it in `folder` with these variables only.
pub(crate) fn start(folder: &TempDir, variables: &[(&str, &str)]) -> Child {
    let mut program = Command::new(env!("CARGO_BIN_EXE_headgate-posts"));
    program.current_dir(folder.path()).env_clear().envs(variables.iter().copied());
    program.kill_on_drop(true).stderr(Stdio::piped()).spawn().expect("a process")
}

pub(crate) fn lines(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

#[tokio::test]
async fn it_runs_without_other_services_and_stops_on_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let process = start(&folder, &[("POSTS_LISTEN", &address.to_string())]);
    let healthy = async { while send(address, Request::get("/health"), "").await.is_err() {} };
    timeout(PATIENCE, healthy).await.expect("a service");

    let post = |i: u8| format!(r#"{{"post":{{"nickname":"名前{i}","body":"投稿 {i} 番"}}}}"#);
    let request = || Request::post("/api/posts").header("content-type", "application/json");
    send(address, request(), &post(1)).await.unwrap().is_created();
    send(address, request(), &post(2)).await.unwrap().is_limited();
    assert!(folder.path().join("data/posts.db").is_file());

    let id = process.id().expect("a running process").to_string();
    assert!(Command::new("kill").arg(id).status().await.unwrap().success());
    let output = process.wait_with_output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    let log = lines(&output);
    assert_eq!(log.matches(" ERROR ").count(), 1, "{log}");
    assert!(log.contains("ip#12ca17b49af22894") && !log.contains("名前"), "{log}");
}

#[tokio::test]
async fn an_invalid_variable_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let output = start(&folder, &[("POSTS_STORE", "redis")]).wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(lines(&output), "headgate-posts: POSTS_STORE: expected memory or dynamodb\n");
}

#[tokio::test]
async fn a_start_on_a_used_port_touches_no_data() {
    let folder = tempfile::tempdir().unwrap();
    let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let used = other.local_addr().unwrap().to_string();
    let process = start(&folder, &[("POSTS_LISTEN", &used)]);
    let output = timeout(PATIENCE, process.wait_with_output()).await;
    let output = output.expect("an exit").unwrap();
    let log = lines(&output);
    assert_eq!(output.status.code(), Some(1), "{log}");
    let error = format!("headgate-posts: cannot listen on {used}: ");
    assert!(log.contains(&error) && log.ends_with("; set POSTS_LISTEN\n"), "{log}");
    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "{log}");
}

/// Sends the process a signal.
async fn signal(process: &Child, signal: &str) {
    let id = process.id().expect("a running process").to_string();
    assert!(Command::new("kill").args([signal, &id]).status().await.unwrap().success());
}

#[tokio::test]
async fn sighup_stops_nothing_and_requests_are_served_during_the_shutdown_delay() {
    let folder = tempfile::tempdir().unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let listen = address.to_string();
    let variables = [("POSTS_LISTEN", listen.as_str()), ("POSTS_SHUTDOWN_DELAY_SECONDS", "3600")];
    let process = start(&folder, &variables);
    let health = async |status: u16| {
        let reaches = async {
            while send(address, Request::get("/health"), "").await.map_or(0, |r| r.status.as_u16())
                != status
            {}
        };
        timeout(PATIENCE, reaches).await.expect("this status");
    };
    health(200).await;
    signal(&process, "-HUP").await;
    signal(&process, "-TERM").await;
    health(503).await;
    let request = Request::post("/api/posts").header("content-type", "application/json");
    let post = r#"{"post":{"nickname":"名前","body":"まだ投稿できます"}}"#;
    send(address, request, post).await.unwrap().is_created();
    // A second signal stops it at once.
    signal(&process, "-TERM").await;
    let output = process.wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(lines(&output).contains("SIGHUP does not reload"), "{}", lines(&output));
}

#[tokio::test]
async fn help_and_version_are_printed_and_unknown_arguments_refused() {
    let output = async |argument: &str| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_headgate-posts"));
        program.arg(argument).kill_on_drop(true).output().await.unwrap()
    };
    let help = output("--help").await;
    assert!(help.status.success(), "{help:?}");
    let text = String::from_utf8(help.stdout).unwrap();
    assert!(text.contains("Usage: headgate-posts") && text.contains("POSTS_LISTEN "), "{text}");
    let version = output("--version").await;
    assert_eq!(
        version.stdout,
        concat!("headgate-posts ", env!("CARGO_PKG_VERSION"), "\n").as_bytes()
    );
    let refused = output("--port").await;
    assert_eq!(refused.status.code(), Some(1));
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(text.contains("unexpected argument '--port'"), "{text}");
}
