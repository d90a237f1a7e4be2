//! A peer over HTTP/2 that writes and reads single frames.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time,
};

use super::harness::LIMIT;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Types of frames.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

/// Flags of frames.
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// A frame of the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// The headers of a response, by its stream.
    Headers(u32),
    /// The last data of a response, by its stream.
    End(u32),
    /// A ping that is not answered yet.
    Ping([u8; 8]),
    /// A GOAWAY with its last stream.
    GoAway(u32),
    /// The end of the connection.
    Eof,
}

pub(crate) struct FramePeer(TcpStream);

impl FramePeer {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let mut peer = Self(TcpStream::connect(address).await.unwrap());
        peer.0.write_all(PREFACE).await.unwrap();
        peer.write(SETTINGS, 0, 0, &[]).await;
        peer
    }

    /// Sends a request without a body.
    pub(crate) async fn ask(&mut self, stream: u32, path: &str) {
        // Entries of the static table: GET, http; then literals: the path and the authority.
        let mut block = vec![0x82, 0x86, 0x04, u8::try_from(path.len()).unwrap()];
        block.extend(path.as_bytes());
        block.extend(b"\x01\x04test");
        self.write(HEADERS, END_STREAM | END_HEADERS, stream, &block).await;
    }

    /// Answers a ping.
    pub(crate) async fn pong(&mut self, ping: [u8; 8]) {
        self.write(PING, ACK, 0, &ping).await;
    }

    /// Reads frames up to the next one of interest.
    pub(crate) async fn next(&mut self) -> Frame {
        loop {
            let mut head = [0; 9];
            let read = time::timeout(LIMIT, self.0.read_exact(&mut head)).await;
            if read.expect("a frame").is_err() {
                return Frame::Eof;
            }
            let [a, b, c, kind, flags, stream @ ..] = head;
            let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
            self.0.read_exact(&mut payload).await.unwrap();
            let stream = u32::from_be_bytes(stream);
            match kind {
                HEADERS => return Frame::Headers(stream),
                DATA if flags & END_STREAM != 0 => return Frame::End(stream),
                PING if flags & ACK == 0 => return Frame::Ping(payload.try_into().unwrap()),
                GOAWAY => {
                    return Frame::GoAway(u32::from_be_bytes(payload[..4].try_into().unwrap()));
                }
                DATA | PING | SETTINGS | WINDOW_UPDATE => {}
                other => panic!("a frame of the type {other}"),
            }
        }
    }

    async fn write(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let mut frame = vec![length[1], length[2], length[3], kind, flags];
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        self.0.write_all(&frame).await.unwrap();
    }
}
