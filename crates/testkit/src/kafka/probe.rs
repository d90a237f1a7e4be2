use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, TcpStream},
    time::Duration,
};

/// Timeout, because another process on the port may never respond. A busy server takes seconds.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A metadata request (3) in version 4 with number 1: no client id, an empty list of topics, create
/// none.
const METADATA: [u8; 15] = [0, 3, 0, 4, 0, 0, 0, 1, 0xff, 0xff, 0, 0, 0, 0, 0];

/// Maximum length of a response.
const MAX_BYTES: usize = 64 * 1024;

/// Returns true if the cluster of this id, and not that of another test, serves this port and lists
/// a broker.
pub(super) fn is_served_by(cluster: &str, port: u16) -> bool {
    let contains = |answer: &[u8], text: &str| {
        answer.windows(text.len()).any(|window| window == text.as_bytes())
    };
    ask(port).is_ok_and(|answer| contains(&answer, cluster) && contains(&answer, "127.0.0.1"))
}

fn ask(port: u16) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(&[&(METADATA.len() as u32).to_be_bytes()[..], &METADATA].concat())?;
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut answer = vec![0; (u32::from_be_bytes(length) as usize).min(MAX_BYTES)];
    stream.read_exact(&mut answer)?;
    Ok(answer)
}
