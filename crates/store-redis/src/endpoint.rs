//! Location of a server: an address, or the master that Sentinel reports.

use redis::{Cmd, ConnectionAddr, ConnectionInfo, Value, cmd};

use crate::{
    dial::{DialError, Dialer, Stream},
    reply,
};

/// Location of a server.
#[derive(Clone)]
pub(crate) enum Endpoint {
    At(Box<ConnectionInfo>),
    /// The master of this name. `redis` has the settings of the connection to it.
    Sentinel {
        nodes: Vec<ConnectionInfo>,
        master: String,
        redis: Box<ConnectionInfo>,
    },
}

impl Endpoint {
    /// Connects to the server.
    pub(crate) async fn dial(&self, dialer: &Dialer) -> Result<Stream, DialError> {
        match self {
            Self::At(server) => dialer.dial(server).await,
            Self::Sentinel { nodes, master, redis } => {
                let address = find_master(dialer, nodes, master).await?;
                let server = with_address(redis, address.0, address.1);
                let role = dialer.ask(&server, cmd("ROLE")).await?;
                if !is_master(&role) {
                    return Err(DialError::Demoted(server.addr().to_string()));
                }
                dialer.dial(&server).await
            }
        }
    }

    pub(crate) fn is_tls(&self) -> bool {
        let (Self::At(redis) | Self::Sentinel { redis, .. }) = self;
        matches!(redis.addr(), ConnectionAddr::TcpTls { .. })
    }

    /// Name of the server without credentials.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::At(server) => server.addr().to_string(),
            Self::Sentinel { master, .. } => format!("Sentinel master {master}"),
        }
    }
}

/// `server` with another host and port.
pub(crate) fn with_address(server: &ConnectionInfo, host: String, port: u16) -> ConnectionInfo {
    let address = match server.addr() {
        ConnectionAddr::TcpTls { insecure, .. } => {
            ConnectionAddr::TcpTls { host, port, insecure: *insecure, tls_params: None }
        }
        _ => ConnectionAddr::Tcp(host, port),
    };
    server.clone().set_addr(address)
}

/// Asks one Sentinel after the other, until one knows the master.
async fn find_master(
    dialer: &Dialer,
    nodes: &[ConnectionInfo],
    master: &str,
) -> Result<(String, u16), DialError> {
    let mut error = DialError::NoMaster(master.to_owned());
    let question: Cmd = cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(master).clone();
    for node in nodes {
        match dialer.ask(node, question.clone()).await {
            Ok(answer) => {
                if let Some(address) = master_address(&answer) {
                    return Ok(address);
                }
            }
            Err(failed) => error = failed,
        }
    }
    Err(error)
}

fn master_address(answer: &Value) -> Option<(String, u16)> {
    let Value::Array(words) = answer else { return None };
    let [host, port] = &words[..] else { return None };
    Some((reply::word(host)?, reply::word(port)?.parse().ok()?))
}

fn is_master(role: &Value) -> bool {
    let Value::Array(words) = role else { return false };
    words.first().and_then(reply::word).as_deref() == Some("master")
}
