//! Bounded reading of the rest of a body.

use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    task::{Poll, ready},
    time::Duration,
};

use bytes::Buf;
use http::{
    HeaderMap, HeaderValue, Version,
    header::{CONNECTION, EXPECT},
};
use http_body::Body;
use tokio::{runtime::Handle, time};

/// Request body that the response does not need.
#[must_use = "a body that is dropped unread closes its connection"]
pub struct UnreadBody<B> {
    body: Pin<Box<B>>,
    terms: Terms,
}

/// Properties of a request whose unread body affects the connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// The client sends the body only after `100 Continue`.
    waits_for_continue: bool,
}

/// State of a connection after a body was drained: reusable for another request, or closing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a response on a connection that closes has to say so"]
pub enum Persistence {
    /// The body was read to its end.
    KeepAlive,
    /// The server closes the connection after the response.
    Close,
}

/// Bounds on reading a body that is discarded.
#[derive(Clone, Copy)]
struct Bounds {
    bytes: u64,
    time: Duration,
}

/// Before the response.
const BEFORE: Bounds = Bounds { bytes: 256 << 10, time: Duration::from_secs(2) };

/// After the response, while the connection closes.
const LINGER: Bounds = Bounds { bytes: 1 << 20, time: Duration::from_secs(5) };

/// Maximum number of lingering connections in the process.
const MAX_LINGERING: usize = 1_024;

static LINGERING: AtomicUsize = AtomicUsize::new(0);

/// Counts one lingering connection until it is dropped.
struct Lingering;

// === impl UnreadBody ===

impl<B> UnreadBody<B>
where
    B: Body<Data: Send, Error: Send> + Send + 'static,
{
    /// The body of a request with this version and these headers; `None` if it has ended or if an
    /// unread body does not affect the connection.
    pub fn new(version: Version, headers: &HeaderMap, body: B) -> Option<Self> {
        let terms = Terms::of(version, headers).filter(|_| !body.is_end_stream())?;
        Some(Self::on(terms, body))
    }

    pub(super) fn on(terms: Terms, body: B) -> Self {
        Self { body: Box::pin(body), terms }
    }

    /// Reads the rest of the body: up to 256 KiB within 2 seconds. A longer rest is read in a
    /// background task, up to 1 MiB within 5 seconds, so that the response can be sent at once.
    ///
    /// Needs a tokio runtime with a timer; without a runtime it reads nothing.
    pub async fn drain(mut self) -> Persistence {
        // Reading would send `100 Continue` and invite the client to send the body.
        if self.terms.waits_for_continue || Handle::try_current().is_err() {
            return Persistence::Close;
        }
        let short = self.body.size_hint().lower() <= BEFORE.bytes;
        if short && read(self.body.as_mut(), BEFORE).await {
            return Persistence::KeepAlive;
        }
        if let Some(lingering) = Lingering::begin() {
            tokio::spawn(async move {
                read(self.body.as_mut(), LINGER).await;
                drop(lingering);
            });
        }
        Persistence::Close
    }
}

/// Reads `body` within `bounds`. Returns `true` if it ended.
async fn read<B: Body>(mut body: Pin<&mut B>, bounds: Bounds) -> bool {
    let mut left = bounds.bytes;
    let reading = poll_fn(|context| {
        loop {
            let Some(frame) = ready!(body.as_mut().poll_frame(context)) else {
                return Poll::Ready(true);
            };
            // The connection is broken.
            let Ok(frame) = frame else {
                return Poll::Ready(false);
            };
            let bytes = frame.data_ref().map_or(0, |data| data.remaining() as u64);
            match left.checked_sub(bytes) {
                Some(fewer) => left = fewer,
                None => return Poll::Ready(false),
            }
        }
    });
    time::timeout(bounds.time, reading).await.unwrap_or(false)
}

impl<B> fmt::Debug for UnreadBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnreadBody").finish_non_exhaustive()
    }
}

// === impl Terms ===

impl Terms {
    /// `None` on HTTP/2, where a stream ends without closing the connection.
    pub(super) fn of(version: Version, headers: &HeaderMap) -> Option<Self> {
        let expect = headers.get(EXPECT);
        let waits_for_continue =
            expect.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        (version <= Version::HTTP_11).then_some(Self { waits_for_continue })
    }
}

// === impl Persistence ===

impl Persistence {
    /// Adds `connection: close` to the headers of a response, if the connection closes.
    pub fn write(self, headers: &mut HeaderMap) {
        if self == Self::Close {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

// === impl Lingering ===

impl Lingering {
    fn begin() -> Option<Self> {
        let room = |lingering| (lingering < MAX_LINGERING).then_some(lingering + 1);
        LINGERING.fetch_update(Relaxed, Relaxed, room).ok().map(|_| Self)
    }
}

impl Drop for Lingering {
    fn drop(&mut self) {
        LINGERING.fetch_sub(1, Relaxed);
    }
}
