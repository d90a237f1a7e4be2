//! The quotas of a server, without a server.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use headgate::{Clock, ManualClock, Store, StoreError, Timestamp};
use headgate_persistence::{Database, QuotaDatabase};
use headgate_quota::{
    ActivePolicy, Author, CommittedUsage, Draft, LoggedEvent, PeriodSpan, QuotaCounter,
    QuotaEventLog, QuotaId, QuotaPolicy, Quotas, RaiseOutcome, StoreCounter,
    usecase::{
        Housekeeping, IncrementError, IncrementUsage, Incremented, ManagePolicies, ReadUsage,
        RefundUsage, ReserveUsage, ResetUsage,
    },
};
use headgate_store_memory::MemoryStore;

use crate::support::{Home, at, author};

/// A process with use cases, clock and counters, on a database that others may share.
pub(crate) struct Replica {
    pub(crate) database: Database,
    pub(crate) kept: QuotaDatabase,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) counter: Arc<Counter>,
    pub(crate) quotas: Quotas,
    pub(crate) policies: ManagePolicies,
    pub(crate) increments: IncrementUsage,
    pub(crate) reservations: ReserveUsage,
    pub(crate) refunds: RefundUsage,
    pub(crate) usage: ReadUsage,
    pub(crate) resets: ResetUsage,
    pub(crate) house: Housekeeping,
}

/// Counters that can be made to fail and to lose everything.
pub(crate) struct Counter {
    inner: StoreCounter,
    down: AtomicBool,
    /// True if calls yield before and after they run, to vary their order.
    dawdling: AtomicBool,
    calls: AtomicU64,
}

// === impl Replica ===

impl Replica {
    /// The first process on this database.
    pub(crate) async fn start(home: &Home) -> Self {
        let clock = Arc::new(ManualClock::new(at(0)));
        let store = Arc::new(MemoryStore::builder().clock(Arc::clone(&clock)).build());
        Self::with(home.migrated().await, clock, store, IncrementUsage::CAPACITY)
    }

    /// Another process on the same database, with the same clock and counters.
    pub(crate) fn beside(&self, home: &Home) -> Self {
        let counter = Arc::clone(&self.counter);
        Self::of(home.open(), Arc::clone(&self.clock), counter, IncrementUsage::CAPACITY)
    }

    /// Another process on the same database, with the same clock and counters of its own.
    pub(crate) fn apart(&self, home: &Home) -> Self {
        let clock = Arc::clone(&self.clock);
        let store = Arc::new(MemoryStore::builder().clock(Arc::clone(&clock)).build());
        let inner = StoreCounter::new(store, StoreCounter::PREFIX, false);
        let counter = Arc::new(Counter::new(inner));
        Self::of(home.open(), clock, counter, IncrementUsage::CAPACITY)
    }

    /// Another process on the same database, with at most this many policies.
    pub(crate) fn bounded(&self, home: &Home, max: u64) -> Self {
        let counter = Arc::clone(&self.counter);
        let clock = Arc::clone(&self.clock);
        Self::of(home.open_bounded(max), clock, counter, IncrementUsage::CAPACITY)
    }

    pub(crate) fn with(
        database: Database,
        clock: Arc<ManualClock>,
        store: Arc<dyn Store>,
        capacity: usize,
    ) -> Self {
        let inner = StoreCounter::new(store, StoreCounter::PREFIX, true);
        let counter = Arc::new(Counter::new(inner));
        Self::of(database, clock, counter, capacity)
    }

    /// A process on a machine with this clock, whose ledger goes by the clock of `kept`.
    pub(crate) fn on_machine(
        database: Database,
        kept: QuotaDatabase,
        clock: Arc<ManualClock>,
        store: Arc<dyn Store>,
        capacity: usize,
    ) -> Self {
        let inner = StoreCounter::new(store, StoreCounter::PREFIX, true);
        Self::keeping(database, kept, clock, Arc::new(Counter::new(inner)), capacity)
    }

    fn of(
        database: Database,
        clock: Arc<ManualClock>,
        counter: Arc<Counter>,
        capacity: usize,
    ) -> Self {
        let kept = database.quotas_at(Arc::clone(&clock) as Arc<dyn Clock>);
        Self::keeping(database, kept, clock, counter, capacity)
    }

    fn keeping(
        database: Database,
        kept: QuotaDatabase,
        clock: Arc<ManualClock>,
        counter: Arc<Counter>,
        capacity: usize,
    ) -> Self {
        let quotas = Quotas::new(
            Arc::new(kept.clone()),
            Arc::new(kept.clone()),
            Arc::clone(&counter) as Arc<dyn QuotaCounter>,
            Arc::clone(kept.clock()) as Arc<dyn Clock>,
        );
        let (increments, committer) = IncrementUsage::new(&quotas, capacity);
        tokio::spawn(committer.run());
        Self {
            policies: ManagePolicies::new(&quotas),
            reservations: ReserveUsage::new(&increments),
            refunds: RefundUsage::new(&increments),
            usage: ReadUsage::new(&quotas),
            resets: ResetUsage::new(&quotas),
            house: Housekeeping::new(&quotas),
            database,
            kept,
            clock,
            counter,
            quotas,
            increments,
        }
    }

    /// The current time as it is stored.
    pub(crate) fn author(&self) -> Author {
        Author { at: self.clock.now(), ..author(0) }
    }

    pub(crate) async fn create(&self, draft: Draft) -> QuotaPolicy {
        self.policies.create(draft, &self.author()).await.unwrap()
    }

    pub(crate) async fn increment(&self, id: &QuotaId, amount: u64) -> Incremented {
        self.increments.increment(id, amount, None).await.unwrap()
    }

    pub(crate) async fn try_increment(
        &self,
        id: &QuotaId,
        amount: u64,
        request_id: &str,
    ) -> Result<Incremented, IncrementError> {
        self.increments.increment(id, amount, Some(request_id)).await
    }

    /// Usage according to the ledger.
    pub(crate) async fn kept(&self, policy: &QuotaPolicy) -> u64 {
        use headgate_quota::QuotaLedger;
        let span = policy.spec.span(self.clock.now()).unwrap();
        let usage = self.kept.usage(&policy.id, &span.name).await.unwrap();
        usage.map_or(0, |usage| usage.used)
    }

    pub(crate) async fn events(&self) -> Vec<LoggedEvent> {
        self.kept.after(0, 1_000).await.unwrap()
    }

    /// Kinds and usages of all events, in order.
    pub(crate) async fn event_kinds(&self) -> Vec<(&'static str, u64)> {
        let events = self.events().await;
        events.iter().map(|logged| (logged.event.kind.name(), logged.event.used)).collect()
    }

    pub(crate) fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }
}

// === impl Counter ===

impl Counter {
    fn new(inner: StoreCounter) -> Self {
        let (down, dawdling) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { inner, down, dawdling, calls: AtomicU64::new(0) }
    }

    /// Delays calls like a network, in varying order.
    pub(crate) fn dawdle(&self, dawdling: bool) {
        self.dawdling.store(dawdling, Relaxed);
    }

    async fn travel(&self) {
        if self.dawdling.load(Relaxed) {
            let call = self.calls.fetch_add(1, Relaxed);
            for _ in 0..call.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 59 {
                tokio::task::yield_now().await;
            }
        }
    }

    pub(crate) fn fail(&self, down: bool) {
        self.down.store(down, Relaxed);
    }

    fn up(&self) -> Result<&StoreCounter, StoreError> {
        if self.down.load(Relaxed) { Err(StoreError::BreakerOpen) } else { Ok(&self.inner) }
    }
}

#[async_trait]
impl QuotaCounter for Counter {
    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }

    async fn raise(
        &self,
        policy: &ActivePolicy,
        span: &PeriodSpan,
        usage: CommittedUsage,
    ) -> Result<RaiseOutcome, StoreError> {
        self.travel().await;
        let done = self.up()?.raise(policy, span, usage).await;
        self.travel().await;
        done
    }

    async fn read(
        &self,
        policy: &ActivePolicy,
        span: &PeriodSpan,
    ) -> Result<Option<u64>, StoreError> {
        self.travel().await;
        let done = self.up()?.read(policy, span).await;
        self.travel().await;
        done
    }

    async fn forget(&self, policy: &ActivePolicy, span: &PeriodSpan) -> Result<(), StoreError> {
        self.travel().await;
        let done = self.up()?.forget(policy, span).await;
        self.travel().await;
        done
    }
}

impl Replica {
    /// The usage that the counter shows.
    pub(crate) async fn shown(&self, policy: &QuotaPolicy) -> Option<u64> {
        let active = self.active(policy);
        let span = active.span(self.clock.now());
        self.counter.inner.read(&active, &span).await.unwrap()
    }

    /// Sets the counter.
    pub(crate) async fn show(&self, policy: &QuotaPolicy, used: u64) {
        let active = self.active(policy);
        let span = active.span(self.clock.now());
        self.counter.inner.forget(&active, &span).await.unwrap();
        self.counter.inner.raise(&active, &span, CommittedUsage::from_total(used)).await.unwrap();
    }

    fn active(&self, policy: &QuotaPolicy) -> Arc<ActivePolicy> {
        self.quotas.catalog().load(&policy.id).unwrap()
    }
}

/// A daily quota for tenant-abc.
pub(crate) fn draft(limit: i64) -> Draft {
    Draft {
        name: "スタンダードプラン".to_owned().into(),
        subject_type: "tenant".to_owned().into(),
        subject_id: "tenant-abc".to_owned().into(),
        limit: limit.into(),
        period: "daily".to_owned().into(),
        ..Draft::default()
    }
}

/// Parses a time.
pub(crate) fn moment(text: &str) -> Timestamp {
    let instant: jiff::Timestamp = text.parse().unwrap();
    Timestamp::from_micros(instant.as_microsecond().cast_unsigned())
}
