//! The last text of metrics, for scrapers that ask at the same time or soon after.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep_until};

/// Maximum age of a shared text.
const MAX_AGE: Duration = Duration::from_secs(1);

/// Pause after a text, per KiB, so that readers who ask again and again leave time for requests. An
/// unoptimized build takes about 80 µs per KiB to write, an optimized one a fraction of it. The length
/// stands for the cost because, unlike a duration, it does not depend on how busy the machine is.
const PAUSE_PER_KIB: Duration = Duration::from_micros(64);

/// Maximum pause after a text.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// The last text, and when the next may be written.
///
/// It is the largest response that needs no token, and the most expensive one. Requests get the same
/// bytes if they were waiting when the writing began. While one reader is still receiving it, others
/// get it for a second, so that many slow readers cost one text. A reader that finishes before it
/// asks again always gets a new one, after the pause.
#[derive(Default)]
pub(super) struct MetricsText {
    last: Option<Written>,
    paused_until: Option<Instant>,
}

struct Written {
    text: Bytes,
    began_at: Instant,
    ended_at: Instant,
}

// === impl MetricsText ===

impl MetricsText {
    /// Returns the last text, if a request of `asked_at` may get it. Forgets it otherwise, so that it
    /// takes no memory while the next one is written.
    pub(super) fn shared(&mut self, asked_at: Instant) -> Option<Bytes> {
        self.last.take_if(|last| !last.is_for(asked_at));
        self.last.as_ref().map(|last| last.text.clone())
    }

    /// Completes when the next text may be written.
    pub(super) async fn pause(&self) {
        if let Some(until) = self.paused_until {
            sleep_until(until).await;
        }
    }

    /// Keeps a text whose writing began at `began_at`, and has just ended.
    pub(super) fn share(&mut self, text: String, began_at: Instant) -> Bytes {
        let (text, ended_at) = (Bytes::from(text), Instant::now());
        self.paused_until = Some(ended_at + pause_after(text.len()));
        self.last = Some(Written { text: text.clone(), began_at, ended_at });
        text
    }
}

// === impl Written ===

impl Written {
    fn is_for(&self, asked_at: Instant) -> bool {
        let is_received = self.text.is_unique();
        self.began_at > asked_at || (!is_received && self.ended_at.elapsed() < MAX_AGE)
    }
}

fn pause_after(bytes: usize) -> Duration {
    let kib = u32::try_from(bytes / 1024).unwrap_or(u32::MAX);
    PAUSE_PER_KIB.saturating_mul(kib).min(MAX_PAUSE)
}

#[cfg(test)]
mod tests {
    use tokio::time;

    use super::*;

    const MOMENT: Duration = Duration::from_nanos(1);

    async fn shared_after(text: &mut MetricsText, passed: Duration) -> Option<Bytes> {
        time::advance(passed).await;
        text.shared(Instant::now())
    }

    #[tokio::test(start_paused = true)]
    async fn shares_a_text_for_a_second_while_it_is_being_read() {
        let mut text = MetricsText::default();
        assert_eq!(text.shared(Instant::now()), None);
        let first = text.share("one 1\n".to_owned(), Instant::now());
        let second = shared_after(&mut text, MAX_AGE.saturating_sub(MOMENT)).await;
        assert_eq!(second.expect("the first is not read yet").as_ptr(), first.as_ptr());
        assert_eq!(shared_after(&mut text, MOMENT).await, None, "it is too old");
    }

    #[tokio::test(start_paused = true)]
    async fn a_text_is_new_after_the_last_was_read() {
        let mut text = MetricsText::default();
        drop(text.share("one 1\n".to_owned(), Instant::now()));
        assert_eq!(shared_after(&mut text, Duration::ZERO).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_pause_is_in_proportion_to_the_length_and_at_most_a_second() {
        for (kib, millis) in [(1, 0), (250, 16), (1000, 64), (100_000, 1000)] {
            let mut text = MetricsText::default();
            drop(text.share("x".repeat(kib * 1024), Instant::now()));
            // Also after it was found to be read.
            assert_eq!(text.shared(Instant::now()), None);
            let began_at = Instant::now();
            text.pause().await;
            // Timers are exact to a millisecond.
            let paused = began_at.elapsed().as_millis();
            assert!((millis..=millis + 1).contains(&paused), "{kib} KiB: {paused} ms");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_text_is_for_all_who_waited_when_it_began_however_long_it_took() {
        let mut text = MetricsText::default();
        let asked_at = Instant::now();
        time::advance(MOMENT).await;
        let began_at = Instant::now();
        time::advance(MAX_AGE * 2).await;
        drop(text.share("one 1\n".to_owned(), began_at));
        assert!(text.shared(asked_at).is_some());
        assert_eq!(text.shared(began_at), None, "it may lack what was counted since");
    }
}
