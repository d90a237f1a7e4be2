use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    task::JoinHandle,
};

use super::*;

/// A server that allows two connections of each address.
async fn start(proxies: TrustedProxies) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let limit = ConnectionLimit::new(proxies, Ipv6Prefix::default());
    let limit = ConnectionLimit { max_by_address: 2, ..limit };
    let served = serve(listener, bounds(), None, Router::new(), limit, std::future::pending());
    (address, tokio::spawn(served))
}

/// A connection from `host`, if it is answered.
async fn open(address: SocketAddr, host: &str) -> Option<TcpStream> {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{host}:0").parse().unwrap()).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    // A connection that is refused may be closed before or after this write.
    let _ = stream.write_all(b"GET / HTTP/1.1\r\nhost: test\r\n\r\n").await;
    let read = stream.read(&mut [0; 1_024]).await;
    read.is_ok_and(|bytes| bytes > 0).then_some(stream)
}

#[tokio::test]
async fn an_address_cannot_take_all_connections() {
    let (address, served) = start(TrustedProxies::default()).await;
    let first = open(address, "127.0.0.1").await.unwrap();
    let second = open(address, "127.0.0.1").await.unwrap();
    assert!(open(address, "127.0.0.1").await.is_none());
    assert!(open(address, "127.0.0.2").await.is_some(), "another address has its own");
    drop(first);
    // The connection counts until the server has seen its end.
    let again = async {
        while open(address, "127.0.0.1").await.is_none() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), again).await.expect("a free connection");
    drop(second);
    served.abort();
}

#[tokio::test]
async fn connections_of_a_trusted_proxy_are_not_limited() {
    let proxy = "127.0.0.1".parse::<headgate_guard::Cidr>().unwrap();
    let (address, served) = start(TrustedProxies::from_iter([proxy])).await;
    let mut streams = Vec::new();
    for _ in 0..5 {
        streams.push(open(address, "127.0.0.1").await.expect("a response"));
    }
    served.abort();
}
