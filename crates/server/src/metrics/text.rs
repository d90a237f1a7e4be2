//! The metrics as text, for several who ask at the same time.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::body::Bytes;
use tokio::time::Instant;

/// How old a text may be that is shared.
const MAX_AGE: Duration = Duration::from_secs(1);

/// The text that was written last.
///
/// It is the largest answer that needs no token. While somebody has not read it yet, those who ask
/// within a second get the same bytes, so that many slow readers cost one text. Whoever reads what
/// they asked for always gets a new one.
#[derive(Default)]
pub(crate) struct MetricsText(Mutex<Option<(Bytes, Instant)>>);

impl MetricsText {
    /// The text that another reader has not taken yet, if it is recent.
    pub(crate) fn shared(&self) -> Option<Bytes> {
        let mut last = self.last();
        let (text, written_at) = last.as_ref()?;
        if text.is_unique() || written_at.elapsed() >= MAX_AGE {
            *last = None;
            return None;
        }
        Some(text.clone())
    }

    /// Shares a text with those who ask next.
    pub(crate) fn share(&self, text: String) -> Bytes {
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
    async fn a_text_is_shared_while_somebody_reads_it_and_for_a_second() {
        let texts = MetricsText::default();
        assert_eq!(texts.shared(), None);
        let first = texts.share("one 1\n".to_owned());
        let second = texts.shared().expect("the first is not read yet");
        assert_eq!(second.as_ptr(), first.as_ptr());
        time::advance(MAX_AGE).await;
        assert_eq!(texts.shared(), None, "it is too old");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_asks_after_it_was_read_gets_a_new_one() {
        let texts = MetricsText::default();
        drop(texts.share("one 1\n".to_owned()));
        assert_eq!(texts.shared(), None);
    }
}
