//! Unix domain sockets.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
};

use headgate_serve::{Drain, UnixSocket};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
};

use super::harness::Running;

#[tokio::test]
async fn requests_are_answered_and_the_file_is_removed_at_the_end() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("http.sock");
    let server = Running::start_on_socket(UnixSocket::bind(&path, 0o600).unwrap());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut stream = UnixStream::connect(&path).await.unwrap();
    let request = b"GET /small HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("small"), "{answer}");
    assert_eq!(server.stop().await.unwrap(), Drain::Complete);
    assert!(!path.exists());
}

#[tokio::test]
async fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("http.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "the standard library does not remove it");
    let live = UnixSocket::bind(&path, 0o660).unwrap();
    let error = UnixSocket::bind(&path, 0o660).unwrap_err();
    assert_eq!(error.to_string(), "another process listens there");
    assert!(path.exists());
    drop(live);

    for file in ["file", "link"] {
        let path = folder.path().join(file);
        match file {
            "file" => fs::write(&path, "data").unwrap(),
            _ => symlink("file", &path).unwrap(),
        }
        let error = UnixSocket::bind(&path, 0o660).unwrap_err().to_string();
        assert!(error.contains("is not a socket"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "data");
    }
}

#[tokio::test]
async fn the_socket_of_a_successor_is_not_removed() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("http.sock");
    let old = UnixSocket::bind(&path, 0o660).unwrap();
    fs::remove_file(&path).unwrap();
    let new = UnixSocket::bind(&path, 0o660).unwrap();
    drop(old);
    assert!(path.exists());
    drop(new);
    assert!(!path.exists());
}
