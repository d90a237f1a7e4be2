//! Reloads rules and quota policies when the database changes.

use std::{fmt::Display, sync::Arc, time::Duration};

use headgate_api::quotas::Skew;
use headgate_config::LiveDuration;
use headgate_persistence::{Database, LedgerClock, SchemaVersion};
use headgate_quota::{PolicyCatalog, QuotaPolicyRepository};
use headgate_ratelimit::{
    Catalog, RateLimitRule, RateLimitRuleRepository, Refreshed, RepositoryError,
};
use tokio::{sync::Notify, time};
use tracing::{info, warn};

/// Reloads rules and policies on a notification of the database, and periodically.
pub(crate) struct Refresher {
    catalog: Arc<Catalog>,
    policies: Arc<PolicyCatalog>,
    database: Arc<Database>,
    clock: Arc<LedgerClock>,
    every: LiveDuration,
    /// True once the tables are those of this version.
    migrated: bool,
    failing: Failing,
    /// Ignored rules when that was last logged.
    left_out: usize,
    /// Clock skew when last measured, if it was too large.
    skew: Option<Skew>,
}

/// Failures of the last attempt: an outage is logged once.
#[derive(Clone, Copy, Debug, Default)]
struct Failing {
    rules: bool,
    policies: bool,
    writes: bool,
}

/// Delay before listening again, or retrying a database that never answered.
const RETRY: Duration = Duration::from_secs(1);

impl Refresher {
    pub(crate) const fn new(
        catalog: Arc<Catalog>,
        policies: Arc<PolicyCatalog>,
        database: Arc<Database>,
        clock: Arc<LedgerClock>,
        every: LiveDuration,
    ) -> Self {
        Self {
            catalog,
            policies,
            database,
            clock,
            every,
            migrated: false,
            failing: Failing { rules: false, policies: false, writes: false },
            left_out: 0,
            skew: None,
        }
    }

    /// Reads rules and policies once. Does not wait for a database that is down: `run` retries.
    pub(crate) async fn refresh(&mut self) {
        match self.refresh_rules().await {
            Ok(refreshed) => {
                if refreshed != Refreshed::Unchanged || self.failing.rules {
                    let snapshot = self.catalog.load();
                    let (revision, rules) = (snapshot.revision().0, snapshot.len());
                    info!(revision, rules, "loaded revision {revision} of the rules");
                }
                self.failing.rules = false;
                self.log_ignored();
            }
            Err(error) => {
                if !self.failing.rules {
                    warn!(%error, "failed to load rules; keeping the current ones");
                }
                self.failing.rules = true;
            }
        }
        if self.migrated {
            self.refresh_policies().await;
        }
        if !self.failing.rules {
            self.probe_writes().await;
        }
    }

    /// Probes writes after one has failed: on a full disk, reads still succeed.
    async fn probe_writes(&mut self) {
        let Some(error) = self.database.write_error() else {
            self.failing.writes = false;
            return;
        };
        if !self.failing.writes {
            warn!(%error, "failed to write to the database; retrying every second");
        }
        self.failing.writes = self.database.probe_writes().await.is_err();
        if !self.failing.writes {
            info!("database accepts writes again");
        }
    }

    /// Logs once that rules are ignored: an older version allowed more windows per pattern.
    fn log_ignored(&mut self) {
        let snapshot = self.catalog.load();
        let left_out = snapshot.ignored();
        if let (Some(first), true) = (left_out.first(), left_out.len() != self.left_out) {
            let (rules, most) = (left_out.len(), RateLimitRule::MAX_WINDOWS);
            warn!(
                rules,
                rule.id = %first,
                "{rules} rules ignored, such as {first}: more than {most} windows per pattern; delete some"
            );
        }
        self.left_out = left_out.len();
    }

    async fn refresh_rules(&mut self) -> Result<Refreshed, RepositoryError> {
        if !self.migrated {
            match self.database.migrate().await {
                Ok(version) => log_if_newer(version),
                Err(error) => {
                    self.catalog.lost(&error);
                    return Err(error);
                }
            }
            self.migrated = true;
        }
        self.catalog.refresh(&*self.database).await
    }

    async fn refresh_policies(&mut self) {
        match self.policies.refresh().await {
            Ok(changed) => {
                if changed || self.failing.policies {
                    let (revision, policies) = (self.policies.revision().0, self.policies.len());
                    info!(revision, policies, "loaded revision {revision} of the quota policies");
                    if let Some(error) = self.policies.freshness().error {
                        warn!(%error, "ignored invalid quota policies; change or delete them");
                    }
                }
                self.failing.policies = false;
                self.log_skew();
            }
            Err(error) => {
                if !self.failing.policies {
                    warn!(%error, "failed to load quota policies; keeping the current ones");
                }
                self.failing.policies = true;
            }
        }
    }

    /// Logs once that the clocks differ, and once that they agree again. The skew was measured when
    /// the policies were read.
    fn log_skew(&mut self) {
        let skew = Skew::of(&self.clock);
        match skew {
            Some(skew) if self.skew.is_none() => {
                let micros = self.clock.skew();
                warn!(skew_seconds = micros / 1_000_000, "clock skew: {skew}");
            }
            None if self.skew.is_some() => {
                info!("clock agrees with the database again");
            }
            _ => {}
        }
        self.skew = skew;
    }

    /// Never returns.
    pub(crate) async fn run(mut self) {
        let changed = Arc::new(Notify::new());
        let listening = listen(Arc::clone(&self.database), Arc::clone(&changed));
        tokio::pin!(listening);
        loop {
            let Failing { rules, policies, writes } = self.failing;
            let max = if rules || policies || writes { RETRY } else { Duration::MAX };
            tokio::select! {
                () = &mut listening => {}
                () = changed.notified() => {}
                () = self.every.sleep(max) => {}
            }
            self.refresh().await;
        }
    }
}

/// Warns if a newer version of the server migrated the database.
fn log_if_newer(version: SchemaVersion) {
    let SchemaVersion { applied, known } = version;
    if version.is_newer() {
        warn!(
            applied,
            known,
            "database schema {applied} is newer than schema {known} of this server; upgrade soon"
        );
    }
}

/// Listens for notifications of the database, and reconnects after a failure. Never returns.
async fn listen(database: Arc<Database>, changed: Arc<Notify>) {
    let quotas = database.quotas();
    let rules = async {
        loop {
            let error = RateLimitRuleRepository::listen(&*database, &changed).await;
            listening_failed(&error, "rules").await;
        }
    };
    let policies = async {
        loop {
            let error = QuotaPolicyRepository::listen(&quotas, &changed).await;
            listening_failed(&error, "quota policies").await;
        }
    };
    tokio::join!(rules, policies);
}

async fn listening_failed(error: &impl Display, what: &str) {
    warn!(%error, "cannot listen for changed {what}; polling instead");
    time::sleep(RETRY).await;
}
