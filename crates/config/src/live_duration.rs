use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{sync::watch, time};

/// A duration that changes when the configuration is reloaded. Clones share it; reading it is one
/// atomic load.
#[derive(Clone, Debug)]
pub struct LiveDuration(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    micros: AtomicU64,
    changed: watch::Sender<()>,
}

impl LiveDuration {
    /// Creates a duration with this value.
    pub fn new(duration: Duration) -> Self {
        let micros = AtomicU64::new(duration.as_micros() as u64);
        Self(Arc::new(Shared { micros, changed: watch::Sender::new(()) }))
    }

    /// Returns the value in force.
    pub fn get(&self) -> Duration {
        Duration::from_micros(self.0.micros.load(Relaxed))
    }

    /// Changes the value.
    pub fn set(&self, duration: Duration) {
        self.0.micros.store(duration.as_micros() as u64, Relaxed);
        self.0.changed.send_replace(());
    }

    /// Sleeps for the duration, at most `max`. A change starts it again.
    pub async fn sleep(&self, max: Duration) {
        let mut changed = self.0.changed.subscribe();
        while time::timeout(self.get().min(max), changed.changed()).await.is_ok() {}
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_change_ends_a_longer_sleep() {
        let interval = LiveDuration::new(Duration::from_secs(3600));
        let began = Instant::now();
        let change = async {
            time::sleep(Duration::from_secs(1)).await;
            interval.set(Duration::from_secs(2));
        };
        tokio::join!(interval.sleep(Duration::MAX), change);
        assert_eq!(began.elapsed(), Duration::from_secs(3));
        interval.sleep(Duration::from_secs(1)).await;
        assert_eq!(began.elapsed(), Duration::from_secs(4));
    }
}
