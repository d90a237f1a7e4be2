//! The executable.

use std::process::Stdio;

use headgate_testkit::free_port;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    process::{Child, Command},
    time::timeout,
};

use super::harness::PATIENCE;

/// Starts it in `folder` with these variables only.
pub(crate) fn start(folder: &TempDir, variables: &[(&str, &str)]) -> Child {
    let mut program = Command::new(env!("CARGO_BIN_EXE_headgate-community-node"));
    program.current_dir(folder.path()).env_clear().envs(variables.iter().copied());
    program.kill_on_drop(true).stderr(Stdio::piped()).spawn().unwrap()
}

#[tokio::test]
async fn it_runs_without_other_services_and_stops_on_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("127.0.0.1:{}", free_port());
    let metrics = format!("127.0.0.1:{}", free_port());
    let process = start(&folder, &[("CN_LISTEN", &address), ("CN_METRICS_LISTEN", &metrics)]);
    let listens = async { while TcpStream::connect(&address).await.is_err() {} };
    timeout(PATIENCE, listens).await.unwrap();
    assert_eq!(health(&metrics).await.as_deref(), Some("200"));
    assert!(folder.path().join("data/community-node.db").is_file());

    let id = process.id().unwrap().to_string();
    assert!(Command::new("kill").arg(id).status().await.unwrap().success());
    let output = timeout(PATIENCE, process.wait_with_output()).await.unwrap().unwrap();
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{log}");
    assert!(log.contains(&format!("Listening on http://{address}")), "{log}");
}

#[tokio::test]
async fn an_invalid_variable_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let output = start(&folder, &[("CN_BACKEND", "file")]).wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let log = String::from_utf8(output.stderr).unwrap();
    assert_eq!(log, "headgate-community-node: CN_BACKEND: expected inmem or redis\n");
}

#[tokio::test]
async fn a_start_on_a_used_port_touches_no_data() {
    let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let used = other.local_addr().unwrap().to_string();
    let free = format!("127.0.0.1:{}", free_port());
    for (listen, metrics, variable) in
        [(&used, &free, "CN_LISTEN"), (&free, &used, "CN_METRICS_LISTEN")]
    {
        let folder = tempfile::tempdir().unwrap();
        let process = start(&folder, &[("CN_LISTEN", listen), ("CN_METRICS_LISTEN", metrics)]);
        let output = timeout(PATIENCE, process.wait_with_output()).await.unwrap().unwrap();
        let log = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{log}");
        let error = format!("headgate-community-node: cannot listen on {used}: ");
        assert!(log.contains(&error) && log.ends_with(&format!("; set {variable}\n")), "{log}");
        assert_eq!(folder.path().read_dir().unwrap().count(), 0, "{log}");
    }
}

/// Sends the process a signal.
async fn signal(process: &Child, signal: &str) {
    let id = process.id().unwrap().to_string();
    assert!(Command::new("kill").args([signal, &id]).status().await.unwrap().success());
}

/// Status of `/healthz`; `None` if it does not answer.
async fn health(address: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let request = b"GET /healthz HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n";
    stream.write_all(request).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    answer.split(' ').nth(1).map(str::to_owned)
}

#[tokio::test]
async fn sighup_stops_nothing_and_requests_are_served_during_the_shutdown_delay() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("127.0.0.1:{}", free_port());
    let variables = [("CN_LISTEN", address.as_str()), ("CN_SHUTDOWN_DELAY_SECONDS", "3600")];
    let process = start(&folder, &variables);
    let reaches = async |status: &str| {
        let reached = async { while health(&address).await.as_deref() != Some(status) {} };
        timeout(PATIENCE, reached).await.unwrap();
    };
    reaches("200").await;
    signal(&process, "-HUP").await;
    signal(&process, "-TERM").await;
    reaches("503").await;
    // A second signal stops it at once.
    signal(&process, "-TERM").await;
    let output = timeout(PATIENCE, process.wait_with_output()).await.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(log.contains("SIGHUP does not reload"), "{log}");
}

#[tokio::test]
async fn help_and_version_are_printed_and_unknown_arguments_refused() {
    let output = async |argument: &str| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_headgate-community-node"));
        program.arg(argument).kill_on_drop(true).output().await.unwrap()
    };
    let help = output("--help").await;
    assert!(help.status.success(), "{help:?}");
    let text = String::from_utf8(help.stdout).unwrap();
    assert!(
        text.contains("Usage: headgate-community-node") && text.contains("CN_LISTEN "),
        "{text}"
    );
    let version = output("--version").await;
    assert_eq!(
        version.stdout,
        concat!("headgate-community-node ", env!("CARGO_PKG_VERSION"), "\n").as_bytes()
    );
    let refused = output("--port").await;
    assert_eq!(refused.status.code(), Some(1));
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(text.contains("unexpected argument '--port'"), "{text}");
}
