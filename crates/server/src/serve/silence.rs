//! How long a connection has asked nothing.

use std::{
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use axum::http::Version;
use tokio::time;

/// What a connection has asked. Hyper would set a timer for every request's head; counting costs
/// next to nothing, and one timer a connection is enough.
#[derive(Clone, Default)]
pub(super) struct Activity(Arc<Counts>);

#[derive(Default)]
struct Counts {
    begun: AtomicU64,
    ended: AtomicU64,
    /// Whether the peer is asked by other means whether it is there.
    pinged: AtomicBool,
    /// An answer that goes on for as long as this can be upgraded: it is the connection's last.
    going: OnceLock<Weak<()>>,
}

impl Activity {
    /// In how many parts silence is measured: one of them is what it may last too long.
    const PARTS: u32 = 4;

    /// Counts a request.
    pub(super) fn begin(&self, version: Version) {
        self.0.begun.fetch_add(1, Relaxed);
        if version == Version::HTTP_2 {
            self.0.pinged.store(true, Relaxed);
        }
    }

    /// Counts an answer.
    pub(super) fn end(&self) {
        self.0.ended.fetch_add(1, Relaxed);
    }

    /// Notes that what was answered goes on, and that silence is no sign of anything until it ends.
    pub(super) fn goes_on(&self, going: &Weak<()>) {
        let _ = self.0.going.set(Weak::clone(going));
    }

    /// Ends once the connection has gone without a request for `patience`, and at most a quarter
    /// of that longer.
    pub(super) async fn silence(&self, patience: Duration) {
        let mut parts = 0;
        let mut seen = 0;
        while parts < Self::PARTS {
            time::sleep(patience / Self::PARTS).await;
            let begun = self.0.begun.load(Relaxed);
            let is_silent = begun == seen && self.waits(begun);
            parts = if is_silent { parts + 1 } else { 0 };
            seen = begun;
        }
    }

    /// Whether it is the peer's turn.
    fn waits(&self, begun: u64) -> bool {
        let goes_on = || self.0.going.get().is_some_and(|going| going.strong_count() > 0);
        !self.0.pinged.load(Relaxed) && self.0.ended.load(Relaxed) == begun && !goes_on()
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    async fn silent_after(activity: &Activity) -> Option<Duration> {
        let started = Instant::now();
        time::timeout(10 * PATIENCE, activity.silence(PATIENCE)).await.ok()?;
        Some(started.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_asks_nothing_falls_silent() {
        let silent = silent_after(&Activity::default()).await.unwrap();
        assert!((PATIENCE..PATIENCE * 5 / 4).contains(&silent), "{silent:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn silence_begins_after_the_answer() {
        let activity = Activity::default();
        let asking = async {
            time::sleep(PATIENCE / 2).await;
            activity.begin(Version::HTTP_11);
            time::sleep(3 * PATIENCE).await;
            activity.end();
        };
        let (silent, ()) = tokio::join!(silent_after(&activity), asking);
        let silent = silent.unwrap().checked_sub(7 * PATIENCE / 2).unwrap();
        assert!((PATIENCE..=PATIENCE * 5 / 4).contains(&silent), "{silent:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn one_whose_answer_goes_on_may_be_silent_until_it_ends() {
        let activity = Activity::default();
        activity.begin(Version::HTTP_11);
        activity.end();
        let going = Arc::new(());
        activity.goes_on(&Arc::downgrade(&going));
        assert_eq!(silent_after(&activity).await, None);
        drop(going);
        let silent = silent_after(&activity).await.unwrap();
        assert!((PATIENCE..=PATIENCE * 5 / 4).contains(&silent), "{silent:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_pinged_may_be_silent() {
        let activity = Activity::default();
        activity.begin(Version::HTTP_2);
        activity.end();
        assert_eq!(silent_after(&activity).await, None);
    }
}
