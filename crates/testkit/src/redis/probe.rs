use std::{
    io::{self, BufRead, BufReader, Write},
    net::{Ipv4Addr, TcpStream},
    time::Duration,
};

/// What else holds the port may take our connection and never answer; `redis-cli` would wait for ever.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether the server that answers on this port is process `pid`, rather than another test's that was there first.
pub(super) fn is_served_by(pid: u32, port: u16, password: Option<&str>) -> bool {
    let answer = ask_for_info(port, password);
    let id = format!("process_id:{pid}");
    answer.is_ok_and(|stream| {
        let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
        lines.any(|line| line == id)
    })
}

fn ask_for_info(port: u16, password: Option<&str>) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    if let Some(password) = password {
        write!(stream, "AUTH {password}\r\n")?;
    }
    stream.write_all(b"INFO server\r\n")?;
    Ok(stream)
}
