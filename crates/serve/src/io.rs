//! The socket of a connection, which counts written and unwritten bytes.

use std::{
    any::Any,
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;

use crate::{activity::Activity, stream::Stream};

/// What a connection holds while its socket is open, such as its slot.
pub(crate) type Held = Box<dyn Any + Send>;

/// The socket of a connection.
pub(crate) struct Socket {
    stream: TokioIo<Stream>,
    activity: Arc<Activity>,
    /// Here and not in the task of the connection, which ends when the connection is upgraded: the
    /// socket then belongs to the handler. Dropped after `stream`, so that a slot is released once
    /// the file is closed.
    _held: Held,
}

impl Socket {
    pub(crate) fn new(stream: Stream, activity: Arc<Activity>, held: Held) -> Self {
        Self { stream: TokioIo::new(stream), activity, _held: held }
    }

    /// Records the result of a write.
    fn record(&self, offered: usize, written: &Poll<io::Result<usize>>) {
        match written {
            Poll::Ready(Ok(bytes)) => self.activity.wrote(*bytes, offered.saturating_sub(*bytes)),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.activity.wrote(0, offered),
        }
    }
}

impl Read for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl Write for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.record(bytes.len(), &written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.record(parts.iter().map(|part| part.len()).sum(), &written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
