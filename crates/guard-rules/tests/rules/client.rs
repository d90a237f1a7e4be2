//! A client that uploads over one HTTP/1 connection.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// Timeout of a response on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Client(TcpStream);

/// The head of a response, whose body was read and discarded.
#[derive(Debug)]
pub(crate) struct Answer(String);

// === impl Client ===

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self(stream)
    }

    /// Sends a POST with a body of `length` bytes, and receives the response.
    pub(crate) fn upload(&mut self, length: usize) -> Answer {
        self.upload_part(length, length)
    }

    /// Sends only the first `sent` bytes of the body.
    pub(crate) fn upload_part(&mut self, length: usize, sent: usize) -> Answer {
        let head = format!("POST / HTTP/1.1\r\nhost: guarded\r\ncontent-length: {length}\r\n\r\n");
        // In one write: the server waits for the body for two seconds, and a busy machine may not
        // run this thread again for as long.
        self.0.write_all(&[head.into_bytes(), vec![b'x'; sent]].concat()).unwrap();
        self.receive()
    }

    fn receive(&mut self) -> Answer {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.0.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let answer = Answer(String::from_utf8(head).unwrap().to_lowercase());
        let mut body = vec![0; answer.header("content-length").parse().unwrap()];
        self.0.read_exact(&mut body).unwrap();
        answer
    }
}

// === impl Answer ===

impl Answer {
    pub(crate) fn status(&self) -> u16 {
        self.0.split(' ').nth(1).unwrap().parse().unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let mut lines = self.0.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| *found == name).map_or("", |(_, value)| value)
    }
}
