//! Keeps the rules and quota policies in force those that the database holds.

use std::{fmt::Display, sync::Arc, time::Duration};

use headgate_persistence::{Database, LedgerClock, SchemaVersion};
use headgate_quota::{PolicyCatalog, QuotaPolicyRepository};
use headgate_ratelimit::{
    Catalog, RateLimitRule, RateLimitRuleRepository, Refreshed, RepositoryError,
};
use tokio::{sync::Notify, time};
use tracing::{info, warn};

use crate::quotas::Skew;

/// Asks the database whether rules or policies have changed: when it says so, and every now and then.
pub(crate) struct Refresher {
    catalog: Arc<Catalog>,
    policies: Arc<PolicyCatalog>,
    database: Arc<Database>,
    clock: Arc<LedgerClock>,
    every: Duration,
    /// Whether the tables are those of this version.
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
        every: Duration,
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

    /// Reads rules and policies once. A database that is not there is waited for later, while others are served.
    pub(crate) async fn refresh(&mut self) {
        match self.refresh_rules().await {
            Ok(refreshed) => {
                if refreshed != Refreshed::Unchanged || self.failing.rules {
                    let snapshot = self.catalog.load();
                    let (revision, rules) = (snapshot.revision().0, snapshot.len());
                    info!(revision, rules, "In force: revision {revision} of the rules");
                }
                self.failing.rules = false;
                self.tell_left_out();
            }
            Err(error) => {
                if !self.failing.rules {
                    warn!(%error, "Cannot read the rules: those in force stay");
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

    /// Finds out whether writes succeed again, once one has failed: reads go on without room on the
    /// disk.
    async fn probe_writes(&mut self) {
        let Some(error) = self.database.write_error() else {
            self.failing.writes = false;
            return;
        };
        if !self.failing.writes {
            warn!(%error, "Cannot write to the database: trying again every second");
        }
        self.failing.writes = self.database.probe_writes().await.is_err();
        if !self.failing.writes {
            info!("The database takes writes again");
        }
    }

    /// Says once that a database of an older version has more windows of one pattern than are asked.
    fn tell_left_out(&mut self) {
        let snapshot = self.catalog.load();
        let left_out = snapshot.ignored();
        if let (Some(first), true) = (left_out.first(), left_out.len() != self.left_out) {
            let (rules, most) = (left_out.len(), RateLimitRule::MAX_WINDOWS);
            warn!(
                rules,
                rule.id = %first,
                "{rules} rules decide nothing, such as {first}: their pattern has {most} shorter windows; delete some"
            );
        }
        self.left_out = left_out.len();
    }

    async fn refresh_rules(&mut self) -> Result<Refreshed, RepositoryError> {
        if !self.migrated {
            match self.database.migrate().await {
                Ok(version) => tell_newer(version),
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
                    info!(revision, policies, "In force: revision {revision} of the quotas");
                }
                self.failing.policies = false;
                self.tell_skew();
            }
            Err(error) => {
                if !self.failing.policies {
                    warn!(%error, "Cannot read the quota policies: those in force stay");
                }
                self.failing.policies = true;
            }
        }
    }

    /// Logs once that the clocks differ, and once that they agree again. Reading the policies has
    /// measured that.
    fn tell_skew(&mut self) {
        let skew = Skew::of(&self.clock);
        match skew {
            Some(skew) if self.skew.is_none() => {
                let micros = self.clock.skew();
                warn!(skew_seconds = micros / 1_000_000, "clock skew: {skew}");
            }
            None if self.skew.is_some() => {
                info!("this machine's clock agrees with the database's again");
            }
            _ => {}
        }
        self.skew = skew;
    }

    /// Goes on for as long as it is polled.
    pub(crate) async fn run(mut self) {
        let changed = Arc::new(Notify::new());
        let listening = listen(Arc::clone(&self.database), Arc::clone(&changed));
        tokio::pin!(listening);
        loop {
            let Failing { rules, policies, writes } = self.failing;
            let pause =
                if rules || policies || writes { self.every.min(RETRY) } else { self.every };
            tokio::select! {
                () = &mut listening => {}
                () = changed.notified() => {}
                () = time::sleep(pause) => {}
            }
            self.refresh().await;
        }
    }
}

/// Warns of tables that a newer server made.
fn tell_newer(version: SchemaVersion) {
    let SchemaVersion { applied, known } = version;
    if version.is_newer() {
        warn!(
            applied,
            known,
            "The database's tables are of version {applied}, newer than version {known} of this server: replace it soon"
        );
    }
}

/// Hears the database for as long as it is polled, whoever restarts in between.
async fn listen(database: Arc<Database>, changed: Arc<Notify>) {
    let quotas = database.quotas();
    let rules = async {
        loop {
            let error = RateLimitRuleRepository::listen(&*database, &changed).await;
            unheard(&error, "rules").await;
        }
    };
    let policies = async {
        loop {
            let error = QuotaPolicyRepository::listen(&quotas, &changed).await;
            unheard(&error, "quota policies").await;
        }
    };
    tokio::join!(rules, policies);
}

async fn unheard(error: &impl Display, what: &str) {
    warn!(%error, "Cannot hear of changed {what}: asking for them instead");
    time::sleep(RETRY).await;
}
