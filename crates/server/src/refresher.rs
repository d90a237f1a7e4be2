//! Keeps the rules in force those that the database holds.

use std::{sync::Arc, time::Duration};

use headgate_persistence::Database;
use headgate_ratelimit::{Catalog, RateLimitRuleRepository, RepositoryError};
use tokio::{sync::Notify, time};
use tracing::{info, warn};

/// Asks the database whether rules have changed: when it says so, and every now and then.
pub(crate) struct Refresher {
    catalog: Arc<Catalog>,
    database: Arc<Database>,
    every: Duration,
    /// Whether the tables are those of this version.
    migrated: bool,
    /// Whether the last attempt failed, so that an outage is told once.
    failing: bool,
}

/// How long to wait before listening again, or looking again for a database that was never there.
const RETRY: Duration = Duration::from_secs(1);

impl Refresher {
    pub(crate) const fn new(
        catalog: Arc<Catalog>,
        database: Arc<Database>,
        every: Duration,
    ) -> Self {
        Self { catalog, database, every, migrated: false, failing: false }
    }

    /// Reads the rules once. A database that is not there is waited for later, while others are served.
    pub(crate) async fn refresh(&mut self) {
        match self.try_refresh().await {
            Ok(changed) => {
                if changed || self.failing {
                    let snapshot = self.catalog.load();
                    let (revision, rules) = (snapshot.revision().0, snapshot.len());
                    info!(revision, rules, "In force: revision {revision} of the rules");
                }
                self.failing = false;
            }
            Err(error) => {
                if !self.failing {
                    warn!(%error, "Cannot read the rules: those in force stay");
                }
                self.failing = true;
            }
        }
    }

    async fn try_refresh(&mut self) -> Result<bool, RepositoryError> {
        if !self.migrated {
            if let Err(error) = self.database.migrate().await {
                self.catalog.lost(&error);
                return Err(error);
            }
            self.migrated = true;
        }
        self.catalog.refresh(&*self.database).await
    }

    /// Goes on for as long as it is polled.
    pub(crate) async fn run(mut self) {
        let changed = Arc::new(Notify::new());
        let listening = listen(Arc::clone(&self.database), Arc::clone(&changed));
        tokio::pin!(listening);
        loop {
            let pause = if self.failing { self.every.min(RETRY) } else { self.every };
            tokio::select! {
                () = &mut listening => {}
                () = changed.notified() => {}
                () = time::sleep(pause) => {}
            }
            self.refresh().await;
        }
    }
}

/// Hears the database for as long as it is polled, whoever restarts in between.
async fn listen(database: Arc<Database>, changed: Arc<Notify>) {
    loop {
        let error = database.listen(&changed).await;
        warn!(%error, "Cannot hear of changed rules: asking for them instead");
        time::sleep(RETRY).await;
    }
}
