//! Upgraded connections.

use std::time::Duration;

use headgate_serve::Bounds;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time,
};

use super::harness::{BOUNDS, LIMIT, Running, TIMEOUTS, until};

/// Connects and upgrades to an echo.
async fn echo(server: &Running) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request =
        b"GET /echo HTTP/1.1\r\nhost: test\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(time::timeout(LIMIT, stream.read_u8()).await.unwrap().unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&head));
    stream
}

async fn echoes(stream: &mut TcpStream, text: &[u8; 4]) {
    stream.write_all(text).await.unwrap();
    let mut back = [0; 4];
    time::timeout(LIMIT, stream.read_exact(&mut back)).await.unwrap().unwrap();
    assert_eq!(&back, text);
}

#[tokio::test]
async fn an_upgraded_connection_keeps_its_slot_until_its_socket_closes() {
    let bounds = Bounds { max_connections: 2, ..BOUNDS };
    let server = Running::start(bounds, TIMEOUTS).await;
    let (mut first, mut second) = (echo(&server).await, echo(&server).await);
    echoes(&mut first, b"ping").await;
    echoes(&mut second, b"ping").await;
    assert_eq!(server.connections.open(), 2);

    // There is no slot left, and a crowd closes neither of them.
    let mut waiting = Box::pin(server.get("/small"));
    let early = time::timeout(Duration::from_millis(300), &mut waiting).await;
    assert!(early.is_err(), "served beyond the bound: {early:?}");
    echoes(&mut first, b"pong").await;
    echoes(&mut second, b"pong").await;
    drop(second);
    assert!(time::timeout(LIMIT, waiting).await.unwrap().starts_with("HTTP/1.1 200"));
    drop(first);
    until("all slots are released", || server.connections.open() == 0).await;
}
