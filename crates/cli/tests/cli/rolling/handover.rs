//! A new process takes over the ports of the old one, on one machine and under load.

use std::{
    net::{SocketAddr, TcpListener},
    sync::atomic::Ordering::SeqCst,
    thread,
};

use headgate_testkit::free_port;
use tokio::runtime::Builder;
use tonic::{Request, client::Grpc, transport::Channel};
use tonic_prost::ProstCodec;

use super::{Client, GRACE, LIMIT, Load, PAUSE, Reply};
use crate::harness::Server;

/// Path of the method `CheckRateLimit`.
const CHECK: &str = "/k1s0.system.ratelimit.v1.RateLimitService/CheckRateLimit";

#[derive(Clone, PartialEq, prost::Message)]
struct Check {
    #[prost(string, tag = "1")]
    rule_id: String,
    #[prost(string, tag = "2")]
    subject: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Checked {
    #[prost(bool, tag = "1")]
    allowed: bool,
}

/// Clients that open a connection for each request.
fn connecting(address: SocketAddr) -> Load {
    Load::with(2, move |stop, answered| {
        let mut problems = Vec::new();
        while !stop.load(SeqCst) && problems.is_empty() {
            match Client::connect(address).and_then(|mut client| client.check()) {
                Ok(Reply { status: 200, .. }) => {
                    answered.fetch_add(1, SeqCst);
                }
                Ok(Reply { status, .. }) => problems.push(format!("new connection: {status}")),
                Err(error) => problems.push(format!("new connection: {error}")),
            }
            thread::park_timeout(PAUSE);
        }
        problems
    })
}

/// Clients that call over gRPC, each on a channel of its own. tonic does not repeat a call that its
/// connection refuses.
pub(super) fn calling(address: SocketAddr) -> Load {
    Load::with(2, move |stop, answered| {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let channel = Channel::from_shared(format!("http://{address}")).unwrap();
            let mut grpc = Grpc::new(channel.timeout(LIMIT).connect().await.unwrap());
            while !stop.load(SeqCst) {
                let check = Check { rule_id: "user".to_owned(), subject: "u1".to_owned() };
                let codec = ProstCodec::<Check, Checked>::default();
                if let Err(error) = grpc.ready().await {
                    return vec![format!("gRPC: not ready: {error}")];
                }
                match grpc.unary(Request::new(check), CHECK.parse().unwrap(), codec).await {
                    Ok(checked) if checked.get_ref().allowed => {
                        answered.fetch_add(1, SeqCst);
                    }
                    other => return vec![format!("gRPC: {other:?}")],
                }
                tokio::time::sleep(PAUSE).await;
            }
            Vec::new()
        })
    })
}

/// Waits until every load has had responses.
fn answered(loads: &[Load]) {
    for load in loads {
        load.answered(50);
    }
}

/// Replaces `old` by `new`, which is ready, and waits until `old` has ended.
fn replace(old: &mut Server, new: Server) {
    assert_eq!(old.stop("-TERM").code(), Some(0));
    *old = new;
}

#[test]
fn a_new_process_takes_over_inherited_sockets_without_an_error() {
    let sockets = [(); 2].map(|()| TcpListener::bind(("127.0.0.1", 0)).unwrap());
    let [rest, grpc] = [0, 1].map(|which: usize| sockets[which].local_addr().unwrap());
    let data = tempfile::tempdir().unwrap();
    let start = || {
        let variables = [
            ("HEADGATE__RATELIMIT__DEFAULT_LIMIT", "100000000"),
            ("HEADGATE__SERVER__DATA_DIR", data.path().to_str().unwrap()),
            GRACE,
        ];
        Server::start_on([&sockets[0], &sockets[1]], &variables)
    };
    let mut server = start();
    assert!(server.greeting.contains(&rest.to_string()), "{}", server.greeting);
    let loads = [Load::start(rest, 4), connecting(rest), calling(grpc)];
    for _ in 0..3 {
        answered(&loads);
        let new = start();
        replace(&mut server, new);
        answered(&loads);
    }
    // Without a process in between, connections wait until the next one accepts them.
    assert_eq!(server.stop("-TERM").code(), Some(0));
    let server = start();
    answered(&loads);
    let problems: Vec<String> = loads.into_iter().flat_map(Load::stop).collect();
    assert_eq!(problems, Vec::<String>::new());
    drop(server);
}

#[test]
fn a_new_process_takes_over_reused_ports_without_an_error() {
    let ports = [free_port(), free_port()];
    let [rest, grpc] = ports.map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    let start = |reuse: &str| {
        let [rest, grpc] = ports.map(|port| port.to_string());
        Server::start(&[
            ("HEADGATE__SERVER__PORT", &rest),
            ("HEADGATE__SERVER__GRPC_PORT", &grpc),
            ("HEADGATE__SERVER__REUSE_PORT", reuse),
            ("HEADGATE__RATELIMIT__DEFAULT_LIMIT", "100000000"),
            GRACE,
        ])
    };
    let mut server = start("true");
    // Connections that the kernel has queued for the old process when it closes its socket are
    // reset, unless net.ipv4.tcp_migrate_req is set: clients here keep theirs.
    let loads = [Load::start(rest, 4), calling(grpc)];
    for _ in 0..2 {
        answered(&loads);
        let new = start("true");
        replace(&mut server, new);
        answered(&loads);
    }
    let problems: Vec<String> = loads.into_iter().flat_map(Load::stop).collect();
    assert_eq!(problems, Vec::<String>::new());
    // A server without the setting does not share the port.
    assert_eq!(start("false").greeting, "");
}
