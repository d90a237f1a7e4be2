//! nginx with the plugin in front of an upstream service.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use headgate_testkit::{Nginx, Skip};
use hyper::Request;
use tokio::{
    io,
    net::{TcpListener, TcpStream},
};

use crate::harness::{Reply, exchange};

const PLUGIN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plugins/kong");

/// The service behind the gateway, which sends rate limit headers of its own.
const UPSTREAM: &str =
    "location /upstream { add_header X-RateLimit-Limit 7; return 200 \"upstream\"; }\n";

pub(super) struct Gateway(Nginx);

// === impl Gateway ===

impl Gateway {
    /// Starts a gateway whose plugin calls `headgate`; `conf` is more of its configuration, as Lua.
    /// Unless it has a timeout, calls of a busy machine may take long.
    pub(super) async fn start(headgate: SocketAddr, conf: &str) -> Result<Self, Skip> {
        let (host, port) = (headgate.ip(), headgate.port());
        let patience = if conf.contains("timeout") { "" } else { "timeout = 60000, " };
        Self::start_with(&format!("host = \"{host}\", port = {port}, {patience}{conf}"), "").await
    }

    /// Starts a gateway with this configuration of the plugin, and more of nginx.
    pub(super) async fn start_with(conf: &str, more: &str) -> Result<Self, Skip> {
        let (conf, more) = (conf.to_owned(), more.to_owned());
        let start = move || Nginx::start(|port| configuration(port, &conf, &more)).map(Self);
        tokio::task::spawn_blocking(start).await.expect("nginx starts")
    }

    /// Sends a request through the gateway.
    pub(super) async fn get(&self, headers: &[(&str, &str)]) -> Reply {
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
        self.get_bytes(&headers).await
    }

    /// The same, with headers that may be any bytes.
    pub(super) async fn get_bytes(&self, headers: &[(&str, &[u8])]) -> Reply {
        let mut request = Request::get("/");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        exchange(self.address(), request, "").await
    }

    /// Validates a configuration of the plugin as Kong does.
    pub(super) async fn judge(&self, conf: &str) -> String {
        exchange(self.address(), Request::post("/judge"), conf).await.text
    }

    pub(super) fn log(&self) -> String {
        self.0.log()
    }

    fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.0.port()).into()
    }
}

fn configuration(port: u16, conf: &str, more: &str) -> String {
    format!(
        "lua_package_path \"{PLUGIN}/?.lua;{PLUGIN}/spec/?.lua;/usr/share/lua/5.1/?.lua;;\";\n\
         {more}\n\
         init_by_lua_block {{ require(\"shim\").configure({{ {conf} }}) }}\n\
         server {{\n listen 127.0.0.1:{port};\n {UPSTREAM}\
         location /judge {{ content_by_lua_block {{ require(\"shim\").judge() }} }}\n\
         location / {{\n\
           access_by_lua_block {{ require(\"shim\").access() }}\n\
           header_filter_by_lua_block {{ require(\"shim\").header_filter() }}\n\
           proxy_pass http://127.0.0.1:{port}/upstream;\n }}\n}}\n"
    )
}

/// The four headers of a limit; missing ones are empty.
pub(super) fn headers(reply: &Reply) -> [&str; 4] {
    ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "retry-after"]
        .map(|name| reply.header(name))
}

/// Forwards connections to `target`.
pub(super) async fn pass_on(listener: TcpListener, target: SocketAddr) {
    while let Ok((mut near, _)) = listener.accept().await {
        tokio::spawn(async move {
            let mut far = TcpStream::connect(target).await.unwrap();
            // Either side may close the connection.
            let _ = io::copy_bidirectional(&mut near, &mut far).await;
        });
    }
}

/// Forwards connections to `target`, and counts them.
pub(super) async fn counted(target: SocketAddr) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                let mut far = TcpStream::connect(target).await.unwrap();
                // Either side may close the connection.
                let _ = io::copy_bidirectional(&mut near, &mut far).await;
            });
        }
    });
    (address, count)
}
