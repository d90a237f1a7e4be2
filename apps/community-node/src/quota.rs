//! Daily quotas of public keys, in the database, by `headgate-quota`.

mod housekeeping;
mod metric;
mod newcomers;
mod retries;
mod shared;

use std::{
    collections::HashMap,
    fmt::Display,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use headgate::{Clock, LimitError, Timestamp};
use headgate_quota::{
    Author, Committer, Draft, Page, PolicyFilter, QuotaId, QuotaPeriod, QuotaPolicy,
    QuotaPolicyRepository, Quotas, RepositoryError, StoreCounter, SubjectType,
    usecase::{IncrementError, IncrementUsage, ManageError, ManagePolicies},
};
use headgate_store_memory::MemoryStore;
use tokio::{sync::Notify, time};

pub use self::metric::Metric;
use self::{newcomers::Newcomers, retries::Retries, shared::SharedQuotas};
use crate::Node;

/// Reason for refusing a charge.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The quota is used up.
    Exceeded {
        current: u64,
        limit: u64,
        reset_at: u64,
        /// True if it is one that newcomers share.
        shared: bool,
    },
    /// The ledger is unavailable.
    Unavailable(String),
}

/// Quotas of all public keys.
pub(crate) struct DailyQuotas {
    repository: Arc<dyn QuotaPolicyRepository>,
    quotas: Quotas,
    manage: ManagePolicies,
    increment: IncrementUsage,
    /// Cache of policy ids by subject.
    known: Mutex<HashMap<String, QuotaId>>,
    /// Cache of subjects without a policy.
    newcomers: Newcomers,
    /// Recognises retries.
    pub(crate) retries: Retries,
    /// Held while a policy is created.
    making: tokio::sync::Mutex<()>,
    /// Maximum number of policies, beyond which newcomers share some.
    max_policies: usize,
    shared: SharedQuotas,
}

/// The quota that a request is charged to.
struct Budget {
    policy: QuotaId,
    /// True if newcomers share it.
    shared: bool,
}

/// Maximum number of policies in the cache.
const MAX_KNOWN: usize = 100_000;

/// Name of our own policies. One with another name is the operator's, and is not changed.
const NAME: &str = "free plan";

/// A client, as quotas know it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payer<'p> {
    /// Public key, as 64 hexadecimal digits.
    pub(crate) pubkey: &'p str,
    /// Address, for newcomers.
    pub(crate) address: Option<IpAddr>,
}

/// Subjects of the newcomers' policies begin with this, which is not a public key.
const NEWCOMERS: &str = "newcomers";

/// Interval at which policies are read again, even without a notification.
const REFRESH: Duration = Duration::from_secs(30);

// === impl DailyQuotas ===

impl DailyQuotas {
    /// Quotas in the database of `node`. The committer must run.
    pub(crate) fn new(node: &Node) -> Result<(Self, Committer), LimitError> {
        let kept = Arc::new(node.quotas.clone());
        // The ledger decides; the counter only saves queries.
        let counter =
            StoreCounter::new(Arc::new(MemoryStore::default()), StoreCounter::PREFIX, false);
        let repository: Arc<dyn QuotaPolicyRepository> = kept.clone();
        // Days follow the database's clock.
        let clock: Arc<dyn Clock> = kept.clock().clone();
        let quotas = Quotas::new(Arc::clone(&repository), kept, Arc::new(counter), clock);
        let (increment, committer) = IncrementUsage::new(&quotas, IncrementUsage::CAPACITY);
        let manage = ManagePolicies::new(&quotas).unrecorded();
        let daily = Self {
            repository,
            quotas,
            manage,
            increment,
            known: Mutex::default(),
            newcomers: Newcomers::default(),
            retries: Retries::new(&node.clock)?,
            making: tokio::sync::Mutex::default(),
            max_policies: node.config.max_quotas,
            shared: SharedQuotas::beside(node.config.max_quotas),
        };
        Ok((daily, committer))
    }

    /// Keeps the policies up to date; never returns.
    pub(crate) async fn follow(&self) {
        let changed = Notify::new();
        let listen = async {
            loop {
                self.repository.listen(&changed).await;
                time::sleep(REFRESH).await;
            }
        };
        let refresh = async {
            loop {
                // Failures leave the policies as they are; requests report them.
                let _ = self.quotas.catalog().refresh().await;
                let _ = time::timeout(REFRESH, changed.notified()).await;
            }
        };
        tokio::join!(listen, refresh, self.run_housekeeping());
    }

    /// Charges one unit of `metric` to `payer`; once for requests with the same id.
    pub(crate) async fn charge(
        &self,
        node: &Node,
        metric: Metric,
        payer: Payer<'_>,
        request_id: Option<&str>,
    ) -> Result<(), Refusal> {
        let Some(limit) = node.user_api.with(|users| metric.limit(users.quota)) else {
            return Ok(());
        };
        let mut budget = self.budget(node, metric, payer, limit).await?;
        let taken = match self.increment.increment(&budget.policy, 1, request_id).await {
            // The policy was deleted: start over.
            Err(IncrementError::Repository(RepositoryError::NotFound(_))) => {
                self.known().retain(|_, policy| *policy != budget.policy);
                budget = self.budget(node, metric, payer, limit).await?;
                self.increment.increment(&budget.policy, 1, request_id).await
            }
            taken => taken,
        };
        match taken.map_err(unavailable)? {
            taken if taken.allowed => Ok(()),
            refused => Err(Refusal::Exceeded {
                current: refused.usage.used,
                limit: refused.usage.limit,
                reset_at: refused.usage.span.end.as_micros() / 1_000_000,
                shared: budget.shared,
            }),
        }
    }

    /// Returns the budget of `payer`, which is created at its first use. New keys are free and must
    /// not fill the database: beyond the bound, newcomers share budgets, by network.
    async fn budget(
        &self,
        node: &Node,
        metric: Metric,
        payer: Payer<'_>,
        limit: u64,
    ) -> Result<Budget, Refusal> {
        let subject = &*format!("{}:{}", metric.name(), payer.pubkey);
        // Read before the database is queried, which finds the key that took the last place.
        let (had_room, policies) = (self.has_room(), self.quotas.catalog().revision());
        if had_room || !self.newcomers.include(subject, policies) {
            let mut own = self.kept(node, subject, limit).await?;
            if own.is_none() && had_room {
                own = self.make(node, subject, limit).await?;
            }
            if let Some(policy) = own {
                return Ok(Budget { policy, shared: false });
            }
            self.newcomers.remember(subject, policies);
        }
        let shared = self.shared.of(payer.address);
        let newcomers = format!("{}:{NEWCOMERS}-{shared}", metric.name());
        let policy = match self.kept(node, &newcomers, limit).await? {
            Some(policy) => policy,
            None => self.create(node, &newcomers, limit).await?,
        };
        Ok(Budget { policy, shared: true })
    }

    /// Returns the policy of `subject`, which is created if there is room.
    async fn make(
        &self,
        node: &Node,
        subject: &str,
        limit: u64,
    ) -> Result<Option<QuotaId>, Refusal> {
        {
            // One at a time, to keep within the bound.
            let _turn = self.making.lock().await;
            if self.has_room() {
                return self.create(node, subject, limit).await.map(Some);
            }
        }
        // Another request of the same key may have taken the last place.
        self.kept(node, subject, limit).await
    }

    /// Returns true if there is room for another policy.
    fn has_room(&self) -> bool {
        self.quotas.catalog().len() < self.max_policies
    }

    /// Returns the stored policy of `subject`, updated to the limit of the document.
    async fn kept(
        &self,
        node: &Node,
        subject: &str,
        limit: u64,
    ) -> Result<Option<QuotaId>, Refusal> {
        let known = self.known().get(subject).cloned();
        if let Some(id) = known {
            let active = self.quotas.catalog().load(&id);
            if active.is_some_and(|active| fits(active.policy(), limit)) {
                return Ok(Some(id));
            }
        }
        let Some(policy) = self.find(subject).await? else { return Ok(None) };
        if !fits(&policy, limit) {
            let draft = Draft { limit: limit.cast_signed().into(), ..Draft::default() };
            let amended = self.manage.amend(&policy.id, &draft, &author(node.clock.now())).await;
            amended.map_err(unavailable)?;
        }
        self.remember(subject, &policy.id);
        Ok(Some(policy.id))
    }

    async fn find(&self, subject: &str) -> Result<Option<QuotaPolicy>, Refusal> {
        let filter = PolicyFilter {
            subject_type: Some(SubjectType::User),
            subject_id: Some(subject.to_owned()),
            enabled_only: false,
        };
        let page = Page::new(1, 10).map_err(unavailable)?;
        let listed = self.manage.list(&filter, page).await.map_err(unavailable)?;
        Ok(listed.items.into_iter().find(|policy| policy.spec.period == QuotaPeriod::Daily))
    }

    async fn create(&self, node: &Node, subject: &str, limit: u64) -> Result<QuotaId, Refusal> {
        let draft = Draft {
            name: NAME.to_owned().into(),
            subject_type: SubjectType::User.name().to_owned().into(),
            subject_id: subject.to_owned().into(),
            limit: limit.cast_signed().into(),
            period: QuotaPeriod::Daily.name().to_owned().into(),
            ..Draft::default()
        };
        let policy = match self.manage.create(draft, &author(node.clock.now())).await {
            // Created by another request in the meantime.
            Err(ManageError::Repository(RepositoryError::Exists { .. })) => {
                let found = self.find(subject).await?;
                found.ok_or_else(|| Refusal::Unavailable("a policy comes and goes".to_owned()))
            }
            created => created.map_err(unavailable),
        }?;
        self.remember(subject, &policy.id);
        Ok(policy.id)
    }

    fn remember(&self, subject: &str, policy: &QuotaId) {
        let mut known = self.known();
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(subject.to_owned(), policy.clone());
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, QuotaId>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true if a policy has the limit of the document.
fn fits(policy: &QuotaPolicy, limit: u64) -> bool {
    policy.spec.limit == limit || policy.spec.name != NAME
}

fn author(at: Timestamp) -> Author {
    Author { actor: "community-node".to_owned(), request_id: String::new(), at }
}

fn unavailable(cause: impl Display) -> Refusal {
    Refusal::Unavailable(cause.to_string())
}
