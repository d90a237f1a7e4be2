//! Denials hold while Headgate cannot answer.

use std::net::{Ipv4Addr, SocketAddr};

use headgate_testkit::{free_port, require};
use hyper::Request;
use serde_json::json;
use tokio::{
    io::{self, AsyncReadExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    time::{Duration, Instant},
};

use super::gateway::{Gateway, headers};
use crate::harness::{Reply, Server, exchange};

/// One request in a window that is too long for anything to refill during a test.
const ONE: [(&str, &str); 2] =
    [("ratelimit.default_limit", "1"), ("ratelimit.default_window_seconds", "31000000")];

/// Limit of waiting on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A way to a server that can be made to hang.
struct Line {
    address: SocketAddr,
    hangs: watch::Sender<bool>,
}

// === impl Line ===

impl Line {
    async fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (hangs, hanging) = watch::channel(false);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(forward(near, target, hanging.clone()));
            }
        });
        Self { address, hangs }
    }

    fn hang(&self) {
        self.hangs.send_replace(true);
    }

    fn resume(&self) {
        self.hangs.send_replace(false);
    }
}

/// Forwards a connection until the line hangs. One that begins then is accepted and never answered.
async fn forward(mut near: TcpStream, target: SocketAddr, mut hanging: watch::Receiver<bool>) {
    if *hanging.borrow_and_update() {
        let _ = near.read_to_end(&mut Vec::new()).await;
        return;
    }
    let mut far = TcpStream::connect(target).await.unwrap();
    tokio::select! {
        _ = io::copy_bidirectional(&mut near, &mut far) => {}
        _ = hanging.changed() => {}
    }
}

fn status(reply: &Reply) -> u16 {
    reply.status.as_u16()
}

fn wait_of(reply: &Reply) -> u64 {
    headers(reply)[3].parse().unwrap_or_else(|_| panic!("{}", reply.text))
}

const ALICE: [(&str, &str); 1] = [("x-test-consumer", "alice")];
const BOB: [(&str, &str); 1] = [("x-test-consumer", "bob")];

#[tokio::test]
async fn a_denied_subject_stays_denied_while_headgate_hangs_and_no_other_is() {
    let server = Server::start(&ONE).await;
    let line = Line::to(server.grpc_address).await;
    let gateway = require!(Gateway::start(line.address, "timeout = 100").await);
    // A call of a busy machine may take longer than the timeout, and is forwarded then.
    let asked = Instant::now();
    while status(&gateway.get(&ALICE).await) != 429 {
        assert!(asked.elapsed() < PATIENCE, "{}", gateway.log());
    }
    let denied = gateway.get(&ALICE).await;
    line.hang();
    for _ in 0..3 {
        let reply = gateway.get(&ALICE).await;
        assert_eq!(status(&reply), 429, "{}", gateway.log());
        assert_eq!(reply.json(), json!({ "message": "API rate limit exceeded" }));
        assert_eq!(headers(&reply)[..3], headers(&denied)[..3]);
        assert!(wait_of(&reply) > 0 && wait_of(&reply) <= wait_of(&denied));
        let other = gateway.get(&BOB).await;
        assert_eq!((status(&other), other.text.as_str()), (200, "upstream"));
    }
}

#[tokio::test]
async fn an_admission_ends_a_remembered_denial() {
    let server = Server::start(&ONE).await;
    let line = Line::to(server.grpc_address).await;
    let gateway = require!(Gateway::start(line.address, "timeout = 60000").await);
    assert_eq!(status(&gateway.get(&ALICE).await), 200);
    assert_eq!(status(&gateway.get(&ALICE).await), 429);
    let reset = json!({"scope": "user", "identifier": "alice"}).to_string();
    assert_eq!(server.admin("POST", "/api/v1/ratelimit/reset", &reset).await.status, 200);
    assert_eq!(status(&gateway.get(&ALICE).await), 200, "{}", gateway.log());
    server.stop().await.unwrap();
    assert_eq!(status(&gateway.get(&ALICE).await), 200, "{}", gateway.log());
    assert!(gateway.log().contains("failed to check the rate limit"), "{}", gateway.log());
}

#[tokio::test]
async fn a_remembered_denial_ends_when_its_time_is_up() {
    let second = [ONE[0], ("ratelimit.default_window_seconds", "2")];
    let server = Server::start(&second).await;
    let line = Line::to(server.grpc_address).await;
    let gateway = require!(Gateway::start(line.address, "timeout = 50").await);
    let asked = Instant::now();
    while status(&gateway.get(&ALICE).await) != 429 {
        assert!(asked.elapsed() < PATIENCE, "{}", gateway.log());
    }
    line.hang();
    let asked = Instant::now();
    while status(&gateway.get(&ALICE).await) != 200 {
        assert!(asked.elapsed() < PATIENCE, "{}", gateway.log());
    }
    line.resume();
}

#[tokio::test]
async fn a_denial_by_attributes_is_remembered_for_the_same_attributes() {
    let server = Server::start(&ONE).await;
    let rule =
        json!({"name": "tenants", "per": ["tenant"], "limit": 1, "window_seconds": 8_640_000});
    server.create_rule(&rule).await;
    let conf = "timeout = 60000, fault_tolerant = false, \
        attributes = { tenant = \"$header.x-tenant\", region = \"eu\" }";
    let gateway = require!(Gateway::start(server.grpc_address, conf).await);
    assert_eq!(status(&gateway.get(&[("x-tenant", "acme")]).await), 200);
    assert_eq!(status(&gateway.get(&[("x-tenant", "acme")]).await), 429);
    assert_eq!(status(&gateway.get(&[("x-tenant", "umbrella")]).await), 200);
    server.stop().await.unwrap();
    assert_eq!(status(&gateway.get(&[("x-tenant", "acme")]).await), 429, "{}", gateway.log());
    assert_eq!(status(&gateway.get(&[("x-tenant", "umbrella")]).await), 503);
}

/// A server of nginx that answers with the result of this Lua.
fn evaluating(port: u16, lua: &str) -> String {
    format!(
        "server {{ listen 127.0.0.1:{port}; location / {{ content_by_lua_block {{ {lua} }} }} }}\n"
    )
}

async fn evaluated(port: u16) -> String {
    exchange((Ipv4Addr::LOCALHOST, port).into(), Request::get("/"), "").await.text
}

#[tokio::test]
async fn a_dictionary_of_the_operator_has_the_denials_as_hashes() {
    let server = Server::start(&ONE).await;
    let (host, port) = (server.grpc_address.ip(), server.grpc_address.port());
    let keys = free_port();
    let lua = "for _, key in ipairs(ngx.shared.headgate_denials:get_keys(0)) do \
        ngx.print(#key, key:find(\"alice\", 1, true) and \" alice\" or \" hash\") end";
    let more = format!("lua_shared_dict headgate_denials 1m;\n{}", evaluating(keys, lua));
    let conf = format!("host = \"{host}\", port = {port}, timeout = 60000");
    let gateway = require!(Gateway::start_with(&conf, &more).await);
    assert_eq!(status(&gateway.get(&ALICE).await), 200);
    assert_eq!(evaluated(keys).await, "");
    assert_eq!(status(&gateway.get(&ALICE).await), 429);
    assert_eq!(evaluated(keys).await, "20 hash");
    server.stop().await.unwrap();
    assert_eq!(status(&gateway.get(&ALICE).await), 429, "{}", gateway.log());
    assert_eq!(status(&gateway.get(&BOB).await), 200);
}

#[tokio::test]
async fn a_worker_remembers_a_bounded_number_of_denials() {
    let lua = "local denials, kept = require \"kong.plugins.headgate.denials\", 0 \
        local denial = { limit = 1, remaining = 0, reset_at = 0, retry_after_ms = 1e9 } \
        for n = 1, 40000 do denials.remember(tostring(n), denial) end \
        for n = 1, 40000 do if denials.recall(tostring(n)) then kept = kept + 1 end end \
        denial.retry_after_ms = 0 denials.remember(\"none\", denial) \
        ngx.print(kept, denials.recall(\"none\") and \" endless\" or \"\")";
    let port = free_port();
    let gateway = require!(Gateway::start_with("", &evaluating(port, lua)).await);
    assert_eq!(evaluated(port).await, "16384", "{}", gateway.log());
}
