//! The cache of the metrics text for clients that read at the same time.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::body::Bytes;
use tokio::time::Instant;

/// Maximum age of a shared text.
const MAX_AGE: Duration = Duration::from_secs(1);

/// The last text.
///
/// It is a large response that needs no token. While one client is still receiving it, requests
/// within a second get the same bytes, so that many slow clients cost one text. A client that
/// finishes before it asks again always gets a new one.
#[derive(Debug, Default)]
pub(super) struct MetricsText(Mutex<Option<(Bytes, Instant)>>);

// === impl MetricsText ===

impl MetricsText {
    /// The last text, if it is recent and another client is still receiving it.
    pub(super) fn shared(&self, now: Instant) -> Option<Bytes> {
        let mut last = self.last();
        let (text, rendered_at) = last.as_ref()?;
        if text.is_unique() || now.duration_since(*rendered_at) >= MAX_AGE {
            *last = None;
            return None;
        }
        Some(text.clone())
    }

    /// Caches a new text.
    pub(super) fn share(&self, text: String, now: Instant) -> Bytes {
        let text = Bytes::from(text);
        *self.last() = Some((text.clone(), now));
        text
    }

    fn last(&self) -> MutexGuard<'_, Option<(Bytes, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_shared_for_a_second_while_it_is_being_read() {
        let (texts, now) = (MetricsText::default(), Instant::now());
        assert_eq!(texts.shared(now), None);
        let first = texts.share("one 1\n".to_owned(), now);
        let soon = now + MAX_AGE - Duration::from_millis(1);
        assert_eq!(texts.shared(soon).unwrap().as_ptr(), first.as_ptr());
        assert_eq!(texts.shared(now + MAX_AGE), None, "it is too old");
        drop(texts.share("one 2\n".to_owned(), now));
        assert_eq!(texts.shared(now), None, "it was read");
    }
}
