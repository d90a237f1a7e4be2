//! Counts continuation frames: a client can send one message in any number of them, and the
//! WebSocket library returns whole messages only.

use std::{
    io, mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Maximum number of continuation frames without a complete message. More of them end the
/// connection.
pub(super) const MAX_FRAGMENTS: u32 = 2_048;

/// Maximum size of a frame's header.
const HEADER_BYTES: usize = 14;

/// A stream that counts continuation frames.
#[derive(Debug)]
pub(super) struct FragmentCounter<S> {
    stream: S,
    frames: Frames,
}

/// State of the current frame, and the count so far.
#[derive(Debug, Default)]
struct Frames {
    header: [u8; HEADER_BYTES],
    header_bytes: usize,
    /// Bytes left of the frame's payload.
    payload: u64,
    fragments: u32,
}

// === impl FragmentCounter ===

impl<S> FragmentCounter<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, frames: Frames::default() }
    }

    /// Continuation frames since the last call.
    pub(super) fn take_fragments(&mut self) -> u32 {
        mem::take(&mut self.frames.fragments)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for FragmentCounter<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        self.frames.read(&buffer.filled()[before..]);
        if self.frames.fragments > MAX_FRAGMENTS {
            return Poll::Ready(Err(io::Error::other("too many continuation frames")));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for FragmentCounter<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

// === impl Frames ===

impl Frames {
    fn read(&mut self, mut bytes: &[u8]) {
        while let Some((first, rest)) = bytes.split_first() {
            if self.payload > 0 {
                let skipped = bytes.len().min(usize::try_from(self.payload).unwrap_or(usize::MAX));
                self.payload -= skipped as u64;
                bytes = &bytes[skipped..];
                continue;
            }
            self.header[self.header_bytes] = *first;
            self.header_bytes += 1;
            bytes = rest;
            if self.header_bytes == self.header_len() {
                self.begin_payload();
            }
        }
    }

    /// Length of the header, as far as it is known.
    fn header_len(&self) -> usize {
        let [_, second, ..] = self.header;
        if self.header_bytes < 2 {
            return 2;
        }
        let mask = if second & 0x80 == 0 { 0 } else { 4 };
        2 + self.length_bytes() + mask
    }

    /// Number of further bytes with the payload's length.
    fn length_bytes(&self) -> usize {
        match self.header[1] & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        }
    }

    fn begin_payload(&mut self) {
        let opcode = self.header[0] & 0x0f;
        let is_continuation = opcode == 0;
        self.fragments = self.fragments.saturating_add(u32::from(is_continuation));
        let more = &self.header[2..2 + self.length_bytes()];
        self.payload = match more {
            [] => u64::from(self.header[1] & 0x7f),
            more => more.iter().fold(0, |length, byte| length << 8 | u64::from(*byte)),
        };
        self.header_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A masked frame of a client.
    fn frame(opcode: u8, payload: usize) -> Vec<u8> {
        let mut frame = vec![opcode];
        match payload {
            0..126 => frame.push(0x80 | payload as u8),
            126..65_536 => {
                frame.push(0x80 | 0x7e);
                frame.extend((payload as u16).to_be_bytes());
            }
            _ => {
                frame.push(0x80 | 0x7f);
                frame.extend((payload as u64).to_be_bytes());
            }
        }
        frame.extend([1, 2, 3, 4]);
        frame.resize(frame.len() + payload, 0);
        frame
    }

    #[test]
    fn continuation_frames_are_counted_however_the_bytes_arrive() {
        // A text in four frames with a ping between them, and a text in one.
        let sizes = [(0x01, 5), (0x00, 0), (0x89, 3), (0x00, 200), (0x80, 70_000), (0x81, 126)];
        let bytes: Vec<u8> = sizes.iter().flat_map(|(opcode, n)| frame(*opcode, *n)).collect();
        for piece in [1, 2, 3, 7, 1_000, bytes.len()] {
            let mut frames = Frames::default();
            for piece in bytes.chunks(piece) {
                frames.read(piece);
            }
            assert_eq!(frames.fragments, 3, "in pieces of {piece}");
            assert_eq!((frames.header_bytes, frames.payload), (0, 0));
        }
    }

    #[tokio::test]
    async fn too_many_continuation_frames_end_the_stream() {
        use tokio::io::AsyncReadExt as _;

        let bytes = frame(0x00, 0).repeat(MAX_FRAGMENTS as usize + 1);
        let mut stream = FragmentCounter::new(bytes.as_slice());
        let mut buffer = vec![0; bytes.len()];
        assert!(stream.read_exact(&mut buffer).await.is_err());
        let mut stream = FragmentCounter::new(&bytes[6..]);
        stream.read_exact(&mut buffer[6..]).await.unwrap();
        assert_eq!((stream.take_fragments(), stream.take_fragments()), (MAX_FRAGMENTS, 0));
    }
}
