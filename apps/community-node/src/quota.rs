//! What a public key may use in a day. It is kept in the database, by `headgate-quota`.

mod house;
mod metric;
mod newcomers;
mod retries;

use std::{
    collections::HashMap,
    fmt::Display,
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
use self::{newcomers::Newcomers, retries::Retries};
use crate::Node;

/// Why nothing was taken.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Nothing is left today.
    Exceeded {
        current: u64,
        limit: u64,
        reset_at: u64,
        /// Whether it was that of all newcomers.
        shared: bool,
    },
    /// The ledger does not answer.
    Unavailable(String),
}

/// The quotas of all public keys.
pub(crate) struct DailyQuotas {
    repository: Arc<dyn QuotaPolicyRepository>,
    quotas: Quotas,
    manage: ManagePolicies,
    increment: IncrementUsage,
    /// Policies by whom they are about: finding one in the database takes a question.
    known: Mutex<HashMap<String, QuotaId>>,
    /// Those for whom there is none.
    newcomers: Newcomers,
    /// Which requests are the same.
    pub(crate) retries: Retries,
    /// Held while a policy is made.
    making: tokio::sync::Mutex<()>,
    /// How many policies there are before newcomers share one.
    max_policies: usize,
}

/// What a request is taken from.
struct Budget {
    policy: QuotaId,
    /// Whether all newcomers have this one together.
    shared: bool,
}

/// How many policies are known without a question.
const MAX_KNOWN: usize = 100_000;

/// What our policies are called. One with another name is somebody's own, and stays as it is.
const NAME: &str = "free plan";

/// Whom the policies of newcomers are about: no public key is called that.
const NEWCOMERS: &str = "newcomers";

/// How often policies are read again, even if nobody tells of a change.
const REFRESH: Duration = Duration::from_secs(30);

// === impl DailyQuotas ===

impl DailyQuotas {
    /// The quotas that the database of `node` keeps. The committer must run.
    pub(crate) fn new(node: &Node) -> Result<(Self, Committer), LimitError> {
        let kept = Arc::new(node.quotas.clone());
        // The ledger decides; this only saves questions.
        let counter =
            StoreCounter::new(Arc::new(MemoryStore::default()), StoreCounter::PREFIX, false);
        let repository: Arc<dyn QuotaPolicyRepository> = kept.clone();
        // Days begin and end by the database's clock.
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
        };
        Ok((daily, committer))
    }

    /// Keeps the policies in force in step with those that are kept, for ever.
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
                // What it cannot read stays as it is, and requests say so.
                let _ = self.quotas.catalog().refresh().await;
                let _ = time::timeout(REFRESH, changed.notified()).await;
            }
        };
        tokio::join!(listen, refresh, self.keep_house());
    }

    /// Takes one of `metric` from the day of `pubkey`; once, for requests with the same id.
    pub(crate) async fn charge(
        &self,
        node: &Node,
        metric: Metric,
        pubkey: &str,
        request_id: Option<&str>,
    ) -> Result<(), Refusal> {
        let Some(limit) = node.user_api.with(|users| metric.limit(users.quota)) else {
            return Ok(());
        };
        let subject = format!("{}:{pubkey}", metric.name());
        let mut budget = self.budget(node, metric, &subject, limit).await?;
        let taken = match self.increment.increment(&budget.policy, 1, request_id).await {
            // Somebody removed it: everybody starts anew.
            Err(IncrementError::Repository(RepositoryError::NotFound(_))) => {
                self.known().retain(|_, policy| *policy != budget.policy);
                budget = self.budget(node, metric, &subject, limit).await?;
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

    /// The budget of `subject`, which is made when it is first needed. Keys cost nothing, and whoever
    /// makes many must not fill the database: past the bound, newcomers share one.
    async fn budget(
        &self,
        node: &Node,
        metric: Metric,
        subject: &str,
        limit: u64,
    ) -> Result<Budget, Refusal> {
        // Asked before the database is: whoever had the last place is found there.
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
        let newcomers = format!("{}:{NEWCOMERS}", metric.name());
        let policy = match self.kept(node, &newcomers, limit).await? {
            Some(policy) => policy,
            None => self.create(node, &newcomers, limit).await?,
        };
        Ok(Budget { policy, shared: true })
    }

    /// The policy about `subject`, which is made if there is room for it.
    async fn make(
        &self,
        node: &Node,
        subject: &str,
        limit: u64,
    ) -> Result<Option<QuotaId>, Refusal> {
        {
            // One at a time, so that none passes the bound.
            let _turn = self.making.lock().await;
            if self.has_room() {
                return self.create(node, subject, limit).await.map(Some);
            }
        }
        // Another request of the same key may have had the last place.
        self.kept(node, subject, limit).await
    }

    /// Whether one more key can have a budget of its own.
    fn has_room(&self) -> bool {
        self.quotas.catalog().len() < self.max_policies
    }

    /// The policy about `subject`, if there is one. It says what it should.
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
            // Another request made it in between.
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

/// Whether a policy says what it should.
fn fits(policy: &QuotaPolicy, limit: u64) -> bool {
    policy.spec.limit == limit || policy.spec.name != NAME
}

fn author(at: Timestamp) -> Author {
    Author { actor: "community-node".to_owned(), request_id: String::new(), at }
}

fn unavailable(cause: impl Display) -> Refusal {
    Refusal::Unavailable(cause.to_string())
}
