//! What a public key may use in a day. It is kept in the database, by `headgate-quota`.

mod unused;

use std::{
    collections::HashMap,
    fmt::Display,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use headgate::Timestamp;
use headgate_quota::{
    Author, Committer, Draft, Page, PolicyFilter, QuotaId, QuotaPeriod, QuotaPolicy,
    QuotaPolicyRepository, Quotas, RepositoryError, Retention, StoreCounter, SubjectType,
    usecase::{Housekeeping, IncrementError, IncrementUsage, ManageError, ManagePolicies},
};
use headgate_service_config::user_api;
use headgate_store_memory::MemoryStore;
use tokio::{sync::Notify, time};
use tracing::debug;

use self::unused::Cursor;
use crate::Node;

/// What is counted by the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Metric {
    /// Searches.
    Search,
    /// Looks at trends.
    Trending,
    /// Questions of trust.
    Trust,
    /// Reports.
    Report,
}

/// Why nothing was taken.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Nothing is left today.
    Exceeded { current: u64, limit: u64, reset_at: u64 },
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
}

/// How many policies are known without a question.
const MAX_KNOWN: usize = 100_000;

/// What our policies are called. One with another name is somebody's own, and stays as it is.
const NAME: &str = "free plan";

/// How often old things are looked for.
const HOUR: Duration = Duration::from_secs(3_600);

/// How long days, and what was told of them, are kept, and how long request ids.
const KEPT_DAYS: u64 = 180;
const REQUEST_ID_DAYS: u64 = 7;

/// How often policies are read again, even if nobody tells of a change.
const REFRESH: Duration = Duration::from_secs(30);

// === impl Metric ===

impl Metric {
    /// The name in answers, metrics and the database.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Search => "index.search_requests",
            Self::Trending => "index.trending_requests",
            Self::Trust => "trust.requests",
            Self::Report => "moderation.report_submits",
        }
    }

    const fn limit(self, quotas: user_api::DailyQuotas) -> Option<u64> {
        match self {
            Self::Search => quotas.search_requests,
            Self::Trending => quotas.trending_requests,
            Self::Trust => quotas.trust_requests,
            Self::Report => quotas.report_submits,
        }
    }
}

// === impl DailyQuotas ===

impl DailyQuotas {
    /// The quotas that the database of `node` keeps. The committer must run.
    pub(crate) fn new(node: &Node) -> (Self, Committer) {
        let kept = Arc::new(node.database.quotas());
        // The ledger decides; this only saves questions.
        let counter =
            StoreCounter::new(Arc::new(MemoryStore::default()), StoreCounter::PREFIX, false);
        let repository: Arc<dyn QuotaPolicyRepository> = kept.clone();
        let clock = Arc::clone(&node.clock);
        let quotas = Quotas::new(Arc::clone(&repository), kept, Arc::new(counter), clock);
        let (increment, committer) = IncrementUsage::new(&quotas, IncrementUsage::CAPACITY);
        let manage = ManagePolicies::new(&quotas);
        (Self { repository, quotas, manage, increment, known: Mutex::default() }, committer)
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

    /// Closes days that are over and forgets what is old, for ever. Nodes may do it at the same time.
    async fn keep_house(&self) {
        let house = Housekeeping::new(&self.quotas);
        let mut hours = time::interval(HOUR);
        let mut cursor = Cursor::default();
        loop {
            hours.tick().await;
            // A database that is away keeps everything until the next hour.
            let closed = house.close_periods().await;
            let pruned = house.prune(&retention(self.quotas.now())).await;
            let deleted = self.delete_unused(&mut cursor).await;
            for done in [closed.map(drop), pruned.map(drop), deleted.map(drop)] {
                if let Err(error) = done {
                    debug!(%error, "Old quotas are kept for another hour");
                }
            }
        }
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
        let id = self.policy(node, &subject, limit).await?;
        let taken = match self.increment.increment(&id, 1, request_id).await {
            // Somebody removed it: everybody starts anew.
            Err(IncrementError::Repository(RepositoryError::NotFound(_))) => {
                self.known().remove(&subject);
                let id = self.policy(node, &subject, limit).await?;
                self.increment.increment(&id, 1, request_id).await
            }
            taken => taken,
        };
        match taken.map_err(unavailable)? {
            taken if taken.allowed => Ok(()),
            refused => Err(Refusal::Exceeded {
                current: refused.usage.used,
                limit: refused.usage.limit,
                reset_at: refused.usage.span.end.as_micros() / 1_000_000,
            }),
        }
    }

    /// The policy about `subject`, which is made when it is first needed.
    async fn policy(&self, node: &Node, subject: &str, limit: u64) -> Result<QuotaId, Refusal> {
        let known = self.known().get(subject).cloned();
        if let Some(id) = known {
            let active = self.quotas.catalog().load(&id);
            if active.is_some_and(|active| fits(active.policy(), limit)) {
                return Ok(id);
            }
        }
        let policy = match self.find(subject).await? {
            Some(policy) => policy,
            None => self.create(node, subject, limit).await?,
        };
        if !fits(&policy, limit) {
            let draft = Draft { limit: limit.cast_signed().into(), ..Draft::default() };
            let amended = self.manage.amend(&policy.id, &draft, &author(node.clock.now())).await;
            amended.map_err(unavailable)?;
        }
        let mut known = self.known();
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(subject.to_owned(), policy.id.clone());
        Ok(policy.id)
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

    async fn create(&self, node: &Node, subject: &str, limit: u64) -> Result<QuotaPolicy, Refusal> {
        let draft = Draft {
            name: NAME.to_owned().into(),
            subject_type: SubjectType::User.name().to_owned().into(),
            subject_id: subject.to_owned().into(),
            limit: limit.cast_signed().into(),
            period: QuotaPeriod::Daily.name().to_owned().into(),
            ..Draft::default()
        };
        match self.manage.create(draft, &author(node.clock.now())).await {
            // Another request made it in between.
            Err(ManageError::Repository(RepositoryError::Exists { .. })) => {
                let found = self.find(subject).await?;
                found.ok_or_else(|| Refusal::Unavailable("a policy comes and goes".to_owned()))
            }
            created => created.map_err(unavailable),
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, QuotaId>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn retention(now: Timestamp) -> Retention {
    let ago =
        |days: u64| Timestamp::from_micros(now.as_micros().saturating_sub(days * 86_400_000_000));
    Retention {
        periods_before: ago(KEPT_DAYS),
        request_ids_before: ago(REQUEST_ID_DAYS),
        events_before: ago(KEPT_DAYS),
        sinks: Vec::new(),
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
