//! DynamoDB Local starts, stops, restarts and cleans up.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::{
    env,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::Command,
};

use headgate_testkit::{DynamoDb, require};

#[test]
fn a_server_responds_stops_on_request_and_cleans_up() {
    let dynamodb = require!(DynamoDb::start());
    let first = process(&dynamodb);
    assert_eq!(list_tables(&dynamodb), r#"{"TableNames":[]}"#);

    dynamodb.stop();
    assert!(!first.exists());
    assert!(TcpListener::bind(address(&dynamodb)).is_ok());

    dynamodb.restart();
    let second = process(&dynamodb);
    assert_ne!(first, second);
    assert_eq!(list_tables(&dynamodb), r#"{"TableNames":[]}"#);

    drop(dynamodb);
    assert!(!second.exists());
}

#[test]
fn shared_servers_are_the_same_server() {
    let one = require!(DynamoDb::shared());
    let two = require!(DynamoDb::shared());
    assert_eq!(one.endpoint(), two.endpoint());
    assert_ne!(one.new_table(), two.new_table());
}

/// Runs in a process of its own, with another environment.
#[test]
fn the_environment_overrides_server_and_jars() {
    const CHILD: &str = "HEADGATE_TESTKIT_CHILD";
    if env::var_os(CHILD).is_none() {
        let empty = tempfile::tempdir().unwrap();
        let child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "the_environment_overrides_server_and_jars"])
            .env(CHILD, "1")
            .env("HEADGATE_TEST_DYNAMODB_ENDPOINT", "http://dynamodb:8000")
            .env("XDG_CACHE_HOME", empty.path())
            .output()
            .unwrap();
        assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
        return;
    }
    assert_eq!(DynamoDb::shared().unwrap().endpoint(), "http://dynamodb:8000");
    let skip = DynamoDb::start().unwrap_err();
    assert_eq!(skip.component, "dynamodb");
}

fn process(dynamodb: &DynamoDb) -> PathBuf {
    PathBuf::from(format!("/proc/{}", dynamodb.pid()))
}

fn address(dynamodb: &DynamoDb) -> String {
    dynamodb.endpoint().strip_prefix("http://").unwrap().to_owned()
}

fn list_tables(dynamodb: &DynamoDb) -> String {
    let mut stream = TcpStream::connect(address(dynamodb)).unwrap();
    let request = "POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 2\r\n\
        content-type: application/x-amz-json-1.0\r\nx-amz-target: DynamoDB_20120810.ListTables\r\n\
        authorization: AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/dynamodb/aws4_request, \
        SignedHeaders=host, Signature=any\r\n\r\n{}";
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.rsplit("\r\n\r\n").next().unwrap().to_owned()
}
