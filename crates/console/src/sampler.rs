//! One task samples once a second for all open pages.

use std::{sync::Arc, time::Duration};

use headgate_stores::Probe;
use headgate_telemetry::metrics::Totals;
use tokio::time::{self, MissedTickBehavior};

use crate::{console::Console, pulse::Beat};

/// Time between two samples.
const EVERY: Duration = Duration::from_secs(1);

/// Beats between two probes of the store.
const PROBE_EVERY: u64 = 3;

/// The task that samples.
pub struct Sampler {
    console: Arc<Console>,
    store: Probe,
    /// All decisions so far.
    totals: Box<dyn Fn() -> Totals + Send + Sync>,
}

impl Sampler {
    /// Creates the task; `totals` returns all decisions so far.
    pub fn new(
        console: Arc<Console>,
        store: Probe,
        totals: impl Fn() -> Totals + Send + Sync + 'static,
    ) -> Self {
        Self { console, store, totals: Box::new(totals) }
    }

    /// Samples once a second. Never returns.
    pub async fn run(self) {
        let Self { console, store, totals } = self;
        let (mut before, mut began) = (totals(), console.now());
        let mut ticks = time::interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for seq in 1.. {
            if seq % PROBE_EVERY == 1 {
                console.pulse.probe(&store).await;
            }
            ticks.tick().await;
            let (after, at) = (totals(), console.now());
            let micros = at.since(began).max(1);
            console.pulse.keep(Beat { seq, at, micros, totals: after.since(&before) });
            (before, began) = (after, at);
        }
    }
}
