//! What a request is called: in its answer, in error bodies and in the log.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use axum::http::{HeaderMap, HeaderName, HeaderValue};

pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// A request's id: the caller's, or a new one.
#[derive(Clone, Debug)]
pub(crate) struct RequestId(HeaderValue);

impl RequestId {
    const MAX_BYTES: usize = 128;

    /// The id that the caller gave, if it is one that can stand in a log line; otherwise a new one.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        match headers.get(HEADER) {
            Some(given) if is_sane(given) => Self(given.clone()),
            _ => Self::new(),
        }
    }

    /// An id that no other request has: `req_` and 12 hexadecimal digits.
    fn new() -> Self {
        static KEYED: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // Hashing a count with a key of this process's own gives ids that
        // neither repeat here nor collide with other instances'.
        let mut rest = KEYED.hash_one(NEXT.fetch_add(1, Relaxed));
        let mut id = *b"req_000000000000";
        for digit in &mut id[4..] {
            *digit = b"0123456789abcdef"[(rest & 0xf) as usize];
            rest >>= 4;
        }
        Self(HeaderValue::from_bytes(&id).unwrap_or(HeaderValue::from_static("req_")))
    }

    pub(crate) fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }

    pub(crate) fn into_header(self) -> HeaderValue {
        self.0
    }
}

fn is_sane(id: &HeaderValue) -> bool {
    let bytes = id.as_bytes();
    (1..=RequestId::MAX_BYTES).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic)
}
