//! A minimal HTTP client.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
};

/// A connection with one request in flight.
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

    /// The same, non-blocking: for polling.
    pub(super) fn without_waiting(self) -> io::Result<Self> {
        self.stream.set_nonblocking(true)?;
        Ok(self)
    }

    /// Sends a whole request.
    pub(super) fn send(&mut self, request: &[u8]) -> io::Result<()> {
        self.stream.write_all(request)
    }

    /// Returns true if an admission has arrived; any other response is an error. Responses are
    /// small, and arrive in one piece.
    pub(super) fn has_answer(&mut self) -> io::Result<bool> {
        let mut answer = [0; 2048];
        match self.stream.read(&mut answer) {
            Ok(length) if answer[..length].starts_with(b"HTTP/1.1 200") => Ok(true),
            Ok(length) => Err(io::Error::other(String::from_utf8_lossy(&answer[..length]))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Sends a request and reads the response; returns the body if the status is success.
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
