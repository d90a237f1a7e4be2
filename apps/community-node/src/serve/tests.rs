use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    task::JoinHandle,
};

use super::*;

/// A server where each address has two places.
async fn start(proxies: TrustedProxies) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let room = Room { max_by_address: 2, ..Room::new(proxies, Ipv6Prefix::default()) };
    let served = serve(listener, Router::new(), room, std::future::pending());
    (address, tokio::spawn(served))
}

/// A connection from `host`, if it is answered.
async fn open(address: SocketAddr, host: &str) -> Option<TcpStream> {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{host}:0").parse().unwrap()).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    // Whoever has no place may find out while it writes, or while it reads.
    let _ = stream.write_all(b"GET / HTTP/1.1\r\nhost: test\r\n\r\n").await;
    let read = stream.read(&mut [0; 1_024]).await;
    read.is_ok_and(|bytes| bytes > 0).then_some(stream)
}

#[tokio::test]
async fn one_address_cannot_take_all_places() {
    let (address, served) = start(TrustedProxies::default()).await;
    let first = open(address, "127.0.0.1").await.unwrap();
    let second = open(address, "127.0.0.1").await.unwrap();
    assert!(open(address, "127.0.0.1").await.is_none());
    assert!(open(address, "127.0.0.2").await.is_some(), "another has its own");
    drop(first);
    // Its place is free once the server has seen that.
    let again = async {
        while open(address, "127.0.0.1").await.is_none() {
            tokio::task::yield_now().await;
        }
    };
    time::timeout(Duration::from_secs(30), again).await.expect("there is a place again");
    drop(second);
    served.abort();
}

#[tokio::test]
async fn a_trusted_proxy_speaks_for_many() {
    let proxy = "127.0.0.1".parse::<headgate_guard::Cidr>().unwrap();
    let (address, served) = start(TrustedProxies::from_iter([proxy])).await;
    let mut streams = Vec::new();
    for _ in 0..5 {
        streams.push(open(address, "127.0.0.1").await.expect("it is answered"));
    }
    served.abort();
}
