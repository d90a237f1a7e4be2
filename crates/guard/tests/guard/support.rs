//! Shared by the tests: a server, a client, policies, a clock.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, body::Body, routing::get};
use bytes::Bytes;
use headgate::{Clock, ManualClock, Timestamp};
use headgate_guard::{Allowance, Backend, Class, Guard, PeerAddress, Policy, Routes};
use headgate_store_memory::MemoryStore;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpSocket},
    task::JoinHandle,
};

/// A server on a free loopback port, until it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(router: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        let task = tokio::spawn(async move { axum::serve(listener, service).await.unwrap() });
        Self { address, task }
    }

    /// A server that responds `hello` behind `guard.layer()`.
    pub(crate) async fn behind(guard: &Guard) -> Self {
        Self::start(hello().layer(guard.layer())).await
    }

    /// Sends one request from 127.0.0.1 with these headers.
    pub(crate) async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Response<Bytes> {
        self.get_from("127.0.0.1", path, headers).await
    }

    /// Sends one request from this address of the loopback network.
    pub(crate) async fn get_from(
        &self,
        source: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Response<Bytes> {
        let (response, _connection) = self.open_from(source, path, headers).await;
        let (parts, body) = response.into_parts();
        Response::from_parts(parts, body.collect().await.unwrap().to_bytes())
    }

    /// Sends one request. Returns the response, whose body is not read yet, and the connection.
    pub(crate) async fn open_from(
        &self,
        source: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> (Response<hyper::body::Incoming>, SendRequest<Empty<Bytes>>) {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(format!("{source}:0").parse().unwrap()).unwrap();
        let stream = socket.connect(self.address).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::get(path).header("host", "guarded");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Empty::new()).unwrap();
        (sender.send_request(request).await.unwrap(), sender)
    }

    /// The status of a request from 127.0.0.1.
    pub(crate) async fn status(&self, path: &str) -> u16 {
        self.get(path, &[]).await.status().as_u16()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Answers everything with `hello`.
pub(crate) fn hello() -> Router {
    Router::new().fallback(get(async || "hello").post(async || "hello"))
}

pub(crate) fn header<'a>(response: &'a Response<Bytes>, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

/// One class of all requests, with `per_minute` by address.
pub(crate) fn public(per_minute: u64) -> Policy {
    Policy::new([by_address("public", per_minute)]).unwrap()
}

pub(crate) fn by_address(class: &str, per_minute: u64) -> Class {
    Class::new(class).unwrap().by_address(Allowance::per_minute(per_minute).unwrap())
}

/// A window of which nothing refills while a test runs, however busy the machine is.
pub(crate) const DAY: Duration = Duration::from_secs(86_400);

/// One class of all requests, with `per_day` by address.
pub(crate) fn daily(per_day: u64) -> Policy {
    Policy::new([daily_class("public", per_day)]).unwrap()
}

pub(crate) fn daily_class(class: &str, per_day: u64) -> Class {
    Class::new(class).unwrap().by_address(Allowance::per(per_day, DAY).unwrap())
}

/// A guard of all requests in memory, with `per_day` by address.
pub(crate) fn guard(per_day: u64) -> Guard {
    Guard::builder(daily(per_day), Routes::all("public")).build().unwrap()
}

/// A guard of all requests by a manual clock, with `per_minute` by address.
pub(crate) fn guard_by_clock(per_minute: u64) -> Guard {
    let guard = Guard::builder(public(per_minute), Routes::all("public"));
    guard.backend(by_clock().1).build().unwrap()
}

/// A manual clock, and a backend that uses it.
pub(crate) fn by_clock() -> (Arc<ManualClock>, Backend) {
    let clock = Arc::new(ManualClock::new(Timestamp::from_micros(1_800_000_000_000_000)));
    let store = MemoryStore::builder().clock(Arc::clone(&clock)).build();
    let backend = Backend::on(Arc::new(store)).clock(Arc::clone(&clock) as Arc<dyn Clock>);
    (clock, backend)
}

/// A request of a client on this machine.
pub(crate) fn request() -> Request<Body> {
    let mut request = Request::new(Body::empty());
    request.extensions_mut().insert(PeerAddress(SocketAddr::from(([127, 0, 0, 1], 1))));
    request
}
