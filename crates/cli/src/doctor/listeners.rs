use std::{io, net::SocketAddr};

use headgate_server::Config;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::report::Finding;

const AREA: &str = "listeners";

/// More than the response of `/healthz` has.
const MAX_RESPONSE_BYTES: u64 = 4096;

pub(super) async fn check(config: &Config) -> Vec<Finding> {
    let (rest, grpc) = (config.server.address(), config.server.grpc_address());
    let is_served = is_headgate(rest).await;
    vec![
        listener("server.port", rest, is_served).await,
        // gRPC is not asked: the same server has both ports.
        listener("server.grpc_port", grpc, is_served).await,
    ]
}

async fn listener(key: &str, address: SocketAddr, is_served: bool) -> Finding {
    match TcpListener::bind(address).await {
        Ok(_) if address.port() == 0 => Finding::ok(AREA, format!("{key}: any free port")),
        Ok(_) => Finding::ok(AREA, format!("{key}: {address} is free")),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_served => {
            Finding::ok(AREA, format!("{key}: {address} is served by Headgate"))
        }
        Err(error) => {
            let name = key.to_ascii_uppercase().replace('.', "__");
            let advice = format!(
                "stop the program that listens there, or set another {key} (HEADGATE__{name})"
            );
            Finding::error(AREA, format!("{key}: cannot listen on {address}: {error}"), advice)
        }
    }
}

/// Returns true if a Headgate server answers at this address.
async fn is_headgate(address: SocketAddr) -> bool {
    if address.port() == 0 {
        return false;
    }
    let answer = async {
        let mut stream = TcpStream::connect(address).await?;
        let request = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.take(MAX_RESPONSE_BYTES).read_to_string(&mut answer).await?;
        io::Result::Ok(answer)
    };
    let answer = answer.await.unwrap_or_default();
    answer.starts_with("HTTP/1.1 200") && answer.contains(r#""status":"ok""#)
        || answer.contains("this port speaks TLS")
}
