//! The cache of the metrics text for scrapers that read at the same time.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::Instant;

/// Maximum age of a shared text.
const MAX_AGE: Duration = Duration::from_secs(1);

/// The last text.
///
/// It is the largest response that needs no token. While one reader is still receiving it, requests
/// within a second get the same bytes, so that many slow readers cost one text. A reader that
/// finishes before it asks again always gets a new one.
#[derive(Default)]
pub(super) struct MetricsText(Mutex<Option<(Bytes, Instant)>>);

impl MetricsText {
    /// The last text, if it is recent and another reader is still receiving it.
    pub(super) fn shared(&self) -> Option<Bytes> {
        let mut last = self.last();
        let (text, written_at) = last.as_ref()?;
        if text.is_unique() || written_at.elapsed() >= MAX_AGE {
            *last = None;
            return None;
        }
        Some(text.clone())
    }

    /// Caches a new text.
    pub(super) fn share(&self, text: String) -> Bytes {
        let text = Bytes::from(text);
        *self.last() = Some((text.clone(), Instant::now()));
        text
    }

    fn last(&self) -> MutexGuard<'_, Option<(Bytes, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn shares_a_text_for_a_second_while_it_is_being_read() {
        let texts = MetricsText::default();
        assert_eq!(texts.shared(), None);
        let first = texts.share("one 1\n".to_owned());
        let second = texts.shared().expect("the first is not read yet");
        assert_eq!(second.as_ptr(), first.as_ptr());
        time::advance(MAX_AGE).await;
        assert_eq!(texts.shared(), None, "it is too old");
    }

    #[tokio::test(start_paused = true)]
    async fn renders_a_new_text_after_the_last_was_read() {
        let texts = MetricsText::default();
        drop(texts.share("one 1\n".to_owned()));
        assert_eq!(texts.shared(), None);
    }
}
