use std::{
    fs,
    io::{self, Read, Write},
    net::{Ipv4Addr, TcpStream},
    path::Path,
    time::Duration,
};

/// Timeout, because another process on the port may never respond. A busy server takes seconds.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The state of a listening socket in `/proc/net/tcp`.
const LISTENING: &str = "0A";

/// An unsigned request, which the server rejects.
const REQUEST: &[u8] =
    b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// Returns true if process `pid`, and not the server of another test, responds on this port.
pub(super) fn is_served_by(pid: u32, port: u16) -> bool {
    // Without information about sockets, any server that responds is accepted.
    let is_ours = listens(pid, port).unwrap_or(true);
    is_ours && ask(port).is_ok_and(|status| status.starts_with(b"HTTP/1.1 "))
}

/// Returns true if the process listens on the port.
fn listens(pid: u32, port: u16) -> io::Result<bool> {
    let sockets = fs::read_to_string("/proc/net/tcp")?;
    let port = format!(":{port:04X}");
    let listening = sockets.lines().filter_map(|line| {
        let columns: Vec<_> = line.split_ascii_whitespace().collect();
        let listens = columns.get(1)?.ends_with(&port) && *columns.get(3)? == LISTENING;
        listens.then(|| format!("socket:[{}]", columns.get(9).unwrap_or(&"")))
    });
    let listening: Vec<_> = listening.collect();
    let files = fs::read_dir(format!("/proc/{pid}/fd"))?;
    let targets = files.flatten().filter_map(|file| fs::read_link(file.path()).ok());
    let mut ours = targets.filter(|to| listening.iter().any(|socket| to == Path::new(socket)));
    Ok(ours.next().is_some())
}

fn ask(port: u16) -> io::Result<[u8; 9]> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(REQUEST)?;
    let mut status = [0; 9];
    stream.read_exact(&mut status)?;
    Ok(status)
}
