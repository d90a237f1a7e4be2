//! The least of HTTP that asks a server something.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
};

/// A connection that asks one thing at a time.
pub(crate) struct Connection {
    stream: TcpStream,
    answers: BufReader<TcpStream>,
}

impl Connection {
    pub(crate) fn open(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        Ok(Self { answers: BufReader::new(stream.try_clone()?), stream })
    }

    /// The same, for somebody who looks again and again instead of waiting.
    pub(super) fn without_waiting(self) -> io::Result<Self> {
        self.stream.set_nonblocking(true)?;
        Ok(self)
    }

    /// Sends a whole request.
    pub(super) fn send(&mut self, request: &[u8]) -> io::Result<()> {
        self.stream.write_all(request)
    }

    /// Whether an admission has come; anything else is an error. Answers are small, and come whole.
    pub(super) fn has_answer(&mut self) -> io::Result<bool> {
        let mut answer = [0; 2048];
        match self.stream.read(&mut answer) {
            Ok(length) if answer[..length].starts_with(b"HTTP/1.1 200") => Ok(true),
            Ok(length) => Err(io::Error::other(String::from_utf8_lossy(&answer[..length]))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Sends a whole request and reads the whole answer: its body, if it says that all went well.
    pub(crate) fn ask(&mut self, request: &[u8]) -> io::Result<Vec<u8>> {
        self.stream.write_all(request)?;
        let mut status = String::new();
        self.answers.read_line(&mut status)?;
        let mut length = 0;
        let mut line = String::new();
        loop {
            line.clear();
            self.answers.read_line(&mut line)?;
            if line.trim().is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
        }
        let mut body = vec![0; length];
        self.answers.read_exact(&mut body)?;
        if status.starts_with("HTTP/1.1 2") {
            Ok(body)
        } else {
            Err(io::Error::other(format!("{} {}", status.trim(), String::from_utf8_lossy(&body))))
        }
    }
}
