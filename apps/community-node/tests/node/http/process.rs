//! The program itself.

use std::process::Stdio;

use headgate_testkit::free_port;
use tempfile::TempDir;
use tokio::{
    net::TcpStream,
    process::{Child, Command},
    time::timeout,
};

use super::harness::PATIENCE;

/// Starts it in `folder`, with these variables and no others.
fn start(folder: &TempDir, variables: &[(&str, &str)]) -> Child {
    let mut program = Command::new(env!("CARGO_BIN_EXE_headgate-community-node"));
    program.current_dir(folder.path()).env_clear().envs(variables.iter().copied());
    program.kill_on_drop(true).stderr(Stdio::piped()).spawn().unwrap()
}

#[tokio::test]
async fn it_runs_with_nothing_installed_and_ends_when_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("127.0.0.1:{}", free_port());
    let process = start(&folder, &[("CN_LISTEN", &address)]);
    let listens = async { while TcpStream::connect(&address).await.is_err() {} };
    timeout(PATIENCE, listens).await.unwrap();
    assert!(folder.path().join("data/community-node.db").is_file());

    let id = process.id().unwrap().to_string();
    assert!(Command::new("kill").arg(id).status().await.unwrap().success());
    let output = timeout(PATIENCE, process.wait_with_output()).await.unwrap().unwrap();
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{log}");
    assert!(log.contains(&format!("Listening on http://{address}")), "{log}");
}

#[tokio::test]
async fn it_says_which_variable_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let output = start(&folder, &[("CN_BACKEND", "file")]).wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let log = String::from_utf8(output.stderr).unwrap();
    assert_eq!(log, "headgate-community-node: CN_BACKEND: expected inmem or redis\n");
}
