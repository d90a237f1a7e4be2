use std::{sync::Arc, time::Duration};

use tokio::time;
use tracing::debug;

use super::{Found, Reloader, Trigger};

/// Interval between two reads of the files.
const INTERVAL: Duration = Duration::from_secs(2);

impl Reloader {
    /// Reads the configuration every few seconds while `server.watch_config` is on, and reloads it
    /// when it has changed. Never returns.
    ///
    /// A change is applied once two reads in a row have found the same, so that a file is not taken
    /// while it is being written.
    pub(crate) async fn watch(self: Arc<Self>) {
        let mut previous: Option<Found> = None;
        loop {
            time::sleep(INTERVAL).await;
            if !self.running.lock().await.config.server.watch_config {
                previous = None;
                continue;
            }
            let found = Found::by(&self.read().await);
            let is_new = self.running.lock().await.last_read != found;
            if is_new && previous.as_ref() == Some(&found) {
                // A refusal is in the log and in the metrics.
                if let Err(error) = self.reload(Trigger::File).await {
                    debug!(%error, "refused a changed file");
                }
            }
            previous = Some(found);
        }
    }
}
