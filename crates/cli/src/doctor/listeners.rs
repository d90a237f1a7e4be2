use std::{
    fs, io,
    net::SocketAddr,
    os::unix::{fs::FileTypeExt as _, net::SocketAddr as UnixAddress},
    path::Path,
};

use headgate_server::Config;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream, UnixStream},
};

use super::report::Finding;

const AREA: &str = "listeners";

/// More than the response of `/healthz` has.
const MAX_RESPONSE_BYTES: u64 = 4096;

pub(super) async fn check(config: &Config) -> Vec<Finding> {
    let (rest, grpc) = (config.server.address(), config.server.grpc_address());
    let is_served = is_headgate(rest).await;
    let mut findings = vec![
        listener("server.port", rest, is_served).await,
        // gRPC is not asked: the same server has both ports.
        listener("server.grpc_port", grpc, is_served).await,
    ];
    let (rest, grpc) = (&config.server.unix_socket, &config.server.grpc_unix_socket);
    let is_served = match rest {
        Some(path) => is_headgate_socket(path).await,
        None => is_served,
    };
    for (key, path) in [("server.unix_socket", rest), ("server.grpc_unix_socket", grpc)] {
        if let Some(path) = path {
            findings.push(socket(key, path, is_served).await);
        }
    }
    findings
}

/// Checks that the server could listen on a Unix domain socket, without creating it.
async fn socket(key: &str, path: &Path, is_served: bool) -> Finding {
    let shown = path.display();
    let unusable = |reason: &str| {
        let advice = format!("let the user that serves write there, or set another {key}");
        Finding::error(AREA, format!("{key}: cannot listen on {shown}: {reason}"), advice)
    };
    if let Err(error) = UnixAddress::from_pathname(path) {
        return unusable(&error.to_string());
    }
    let Ok(metadata) = fs::symlink_metadata(path) else {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        return match tempfile::tempfile_in(folder.unwrap_or(Path::new("."))) {
            Ok(_) => Finding::ok(AREA, format!("{key}: {shown} can be created")),
            Err(error) => unusable(&error.to_string()),
        };
    };
    if !metadata.file_type().is_socket() {
        return unusable("the file exists and is not a socket");
    }
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            Finding::ok(AREA, format!("{key}: {shown} is left over, and will be replaced"))
        }
        Ok(_) if is_served => Finding::ok(AREA, format!("{key}: {shown} is served by Headgate")),
        Ok(_) => unusable("another process listens there"),
        Err(error) => unusable(&error.to_string()),
    }
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
    match TcpStream::connect(address).await {
        Ok(stream) => answers(stream).await,
        Err(_) => false,
    }
}

/// Returns true if a Headgate server answers on this socket.
async fn is_headgate_socket(path: &Path) -> bool {
    match UnixStream::connect(path).await {
        Ok(stream) => answers(stream).await,
        Err(_) => false,
    }
}

/// Returns true if the peer answers as Headgate does.
async fn answers(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> bool {
    let answer = async {
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
