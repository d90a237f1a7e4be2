use std::{
    io::{self, BufRead, BufReader, Write},
    net::{Ipv4Addr, TcpStream},
    time::Duration,
};

/// Timeout, because another process on the port may never respond. A busy server takes seconds.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Returns true if process `pid`, and not the server of another test, responds on this port.
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
    stream.set_read_timeout(Some(TIMEOUT))?;
    if let Some(password) = password {
        write!(stream, "AUTH {password}\r\n")?;
    }
    stream.write_all(b"INFO server\r\n")?;
    Ok(stream)
}
