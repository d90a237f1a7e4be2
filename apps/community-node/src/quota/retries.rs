//! Retries of requests.

use std::{sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use headgate::{Clock, Cost, Key, Limit, LimitError};
use headgate_store_memory::MemoryStore;
use ring::digest::{Context, SHA256};

/// Distinguishes retries from reuse of one id for many requests, which cost the same work.
pub(crate) struct Retries {
    clock: Arc<dyn Clock>,
    sent: MemoryStore<Arc<dyn Clock>>,
    limit: Limit,
}

/// Window of the clock in which requests with the same id are retries, in seconds.
const WINDOW: u64 = 600;

/// Requests for one charge: the first, and three retries.
const TIMES: u64 = 4;

/// Maximum number of requests that are remembered. Beyond that, requests are charged as if they had
/// no id.
const REMEMBERED: usize = 100_000;

// === impl Retries ===

impl Retries {
    pub(super) fn new(clock: &Arc<dyn Clock>) -> Result<Self, LimitError> {
        let sent = MemoryStore::builder().capacity(REMEMBERED).clock(Arc::clone(clock)).build();
        let limit = Limit::fixed_window(TIMES, Duration::from_secs(WINDOW))?;
        Ok(Self { clock: Arc::clone(clock), sent, limit })
    }

    /// Id under which a request of these `parts` is charged, the same for all retries; `None` if it
    /// came too often to be one.
    pub(crate) fn id(&self, parts: &[&[u8]]) -> Option<String> {
        let window = self.clock.now().as_micros() / (WINDOW * 1_000_000);
        let mut hash = Context::new(&SHA256);
        hash.update(&window.to_be_bytes());
        for part in parts {
            // With their lengths, so that parts cannot run into each other.
            hash.update(&(part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let id = URL_SAFE_NO_PAD.encode(hash.finish());
        let sent = self.sent.acquire(Key::new(&id).ok()?, &self.limit, Cost::ONE);
        sent.is_ok_and(|sent| sent.allowed).then_some(id)
    }
}

#[cfg(test)]
mod tests {
    use headgate::{ManualClock, Timestamp};

    use super::*;

    #[test]
    fn a_request_is_the_same_for_ten_minutes_and_three_times() {
        let clock = Arc::new(ManualClock::new(Timestamp::from_micros(0)));
        let retries = Retries::new(&(clock.clone() as Arc<dyn Clock>)).unwrap();
        let request: [&[u8]; 2] = [b"id", b"GET /"];
        let id = retries.id(&request).unwrap();
        assert_ne!(retries.id(&[b"idG", b"ET /"]), Some(id.clone()));
        for _ in 0..3 {
            assert_eq!(retries.id(&request), Some(id.clone()));
        }
        assert_eq!(retries.id(&request), None);

        clock.advance(Duration::from_secs(WINDOW - 1));
        assert_eq!(retries.id(&request), None);
        clock.advance(Duration::from_secs(1));
        let later = retries.id(&request).unwrap();
        assert_ne!(later, id, "it is charged again");
    }
}
