use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, TcpStream},
    time::Duration,
};

/// What else holds the port may take our connection and never answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Asks for the cluster without topics: request 3 (metadata) in version 4, number 1, of nobody; an empty list; and
/// create nothing.
const METADATA: [u8; 15] = [0, 3, 0, 4, 0, 0, 0, 1, 0xff, 0xff, 0, 0, 0, 0, 0];

/// Answers of a cluster of one node are shorter than this.
const LONGEST: usize = 64 * 1024;

/// Whether the cluster of this id, rather than another test's that was there first, serves this port and lists a
/// broker there.
pub(super) fn is_served_by(cluster: &str, port: u16) -> bool {
    let contains = |answer: &[u8], text: &str| {
        answer.windows(text.len()).any(|window| window == text.as_bytes())
    };
    ask(port).is_ok_and(|answer| contains(&answer, cluster) && contains(&answer, "127.0.0.1"))
}

fn ask(port: u16) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(&[&(METADATA.len() as u32).to_be_bytes()[..], &METADATA].concat())?;
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut answer = vec![0; (u32::from_be_bytes(length) as usize).min(LONGEST)];
    stream.read_exact(&mut answer)?;
    Ok(answer)
}
