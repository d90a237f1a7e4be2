//! Counters, clock and observer of the guards.

use std::{fmt, net::IpAddr, num::NonZeroU32, sync::Arc, time::Duration};

use headgate::{
    Breaker, Check, Clock, Cost, Decision, Degraded, FailCause, FailMode, FailurePolicy, Key,
    Limit, OutageLog, ReserveError, Source, Store, StoreError, SystemClock, Timestamp,
};
use headgate_store_memory::MemoryStore;
use tracing::warn;

use crate::{
    AddressKey, Denied, Ipv6Prefix, Observer, Reason,
    decider::{CheckResult, Rejection},
    name::{Name, NameError},
};

/// Wait of a denial that is not by a rate limit.
pub(crate) const UNKNOWN_WAIT: Duration = Duration::from_secs(1);

/// Counters of the guards: in this process, or in a store that several processes share.
///
/// Cloning is cheap; clones share the counters.
///
/// ```
/// use std::{num::NonZeroU32, sync::Arc};
///
/// use headgate::{FailMode, Store};
/// use headgate_guard::Backend;
///
/// /// `backend: inmem | redis`, as an operator configures it.
/// fn backend(shared: Option<Arc<dyn Store>>) -> Backend {
///     match shared {
///         None => Backend::memory(),
///         Some(store) => Backend::shared(store, NonZeroU32::new(3).unwrap()),
///     }
/// }
/// # backend(None);
/// ```
#[derive(Clone)]
pub struct Backend {
    counters: Counters,
    fail_mode: FailMode,
    namespace: Name,
    ipv6: Ipv6Prefix,
    clock: Arc<dyn Clock>,
    observer: Option<Arc<dyn Observer>>,
    outages: Arc<OutageLog>,
}

#[derive(Clone)]
pub(crate) enum Counters {
    /// Answers without waiting, and without an allocation for one limit.
    Memory(Arc<MemoryStore>),
    Store(Arc<dyn Store>),
}

// === impl Backend ===

impl Backend {
    /// Counts in this process, for at most a million subjects.
    pub fn memory() -> Self {
        Self::in_memory(Arc::new(MemoryStore::default()))
    }

    /// Counts in this process, in `store`.
    pub fn in_memory(store: Arc<MemoryStore>) -> Self {
        Self::new(Counters::Memory(store))
    }

    /// Counts in `store`, which several processes share, behind a circuit breaker. While the store
    /// fails, each process enforces its share of the limit, one of `replicas`, unless
    /// [`fail_mode`](Self::fail_mode) says otherwise.
    pub fn shared(store: Arc<dyn Store>, replicas: NonZeroU32) -> Self {
        let breaker = Breaker::new(store, SystemClock::new());
        let local = MemoryStore::default();
        let policy = FailurePolicy::new(breaker, local, replicas, SystemClock::new());
        Self::on(Arc::new(policy))
    }

    /// Counts in `store`, without a circuit breaker. While the store fails, every request is
    /// denied, unless [`fail_mode`](Self::fail_mode) is [`FailMode::Open`].
    pub fn on(store: Arc<dyn Store>) -> Self {
        Self::new(Counters::Store(store))
    }

    fn new(counters: Counters) -> Self {
        Self {
            counters,
            fail_mode: FailMode::Local,
            namespace: Name::new("guard").unwrap_or_else(|_| unreachable!("a valid name")),
            ipv6: Ipv6Prefix::default(),
            clock: Arc::new(SystemClock::new()),
            observer: None,
            outages: Arc::default(),
        }
    }

    /// Sets the failure mode, which decides while the store is unavailable. Default:
    /// [`FailMode::Local`].
    #[must_use]
    pub fn fail_mode(self, fail_mode: FailMode) -> Self {
        Self { fail_mode, ..self }
    }

    /// Sets the first word of every key in the store. Default: `guard`.
    ///
    /// Services that share a store but not their limits need different namespaces. So does a
    /// service on Redis whose limits change their algorithm: until they expire, the keys hold the
    /// state of the previous one.
    pub fn namespace(self, namespace: &str) -> Result<Self, NameError> {
        Ok(Self { namespace: Name::new(namespace)?, ..self })
    }

    /// Sets the length of the IPv6 networks that count as one client. Default: 64 bits.
    #[must_use]
    pub fn ipv6_prefix(self, ipv6: Ipv6Prefix) -> Self {
        Self { ipv6, ..self }
    }

    /// Sets the clock for penalties and warnings. The store has its own.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        // Times of two clocks cannot be compared.
        Self { clock, outages: Arc::default(), ..self }
    }

    /// Sets the observer of rejections and of an outage of the store.
    #[must_use]
    pub fn observer(self, observer: Arc<dyn Observer>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    pub(crate) const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The store, whichever it is.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        match &self.counters {
            Counters::Memory(memory) => Arc::clone(memory) as _,
            Counters::Store(store) => Arc::clone(store),
        }
    }

    pub(crate) const fn mode(&self) -> FailMode {
        self.fail_mode
    }

    /// Returns `true` if requests are admitted while a store without a failure policy fails.
    pub(crate) fn admits_without_store(&self) -> bool {
        self.fail_mode == FailMode::Open
    }

    /// The store, if it is the one in memory.
    pub(crate) const fn memory_store(&self) -> Option<&Arc<MemoryStore>> {
        match &self.counters {
            Counters::Memory(memory) => Some(memory),
            Counters::Store(_) => None,
        }
    }

    pub(crate) const fn time(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    pub(crate) const fn ipv6(&self) -> Ipv6Prefix {
        self.ipv6
    }

    /// The key of `address` after `prefix`.
    pub(crate) fn address_key(&self, prefix: &str, address: IpAddr) -> AddressKey {
        AddressKey::grouped(prefix, address, self.ipv6)
    }

    pub(crate) fn prefix(&self, class: &str, tag: &str) -> Box<str> {
        format!("{}:{class}:{tag}:", self.namespace.as_str()).into()
    }

    /// A check at cost 1, which every limit can admit.
    pub(crate) fn check<'a>(&self, key: Key<'a>, limit: &'a Limit) -> Option<Check<'a>> {
        Check::new(key, limit, Cost::ONE).ok().map(|check| check.with_fail_mode(self.fail_mode))
    }

    /// Decision in place of a store that failed without a failure policy.
    pub(crate) fn store_failed(&self, error: &StoreError) -> CheckResult {
        self.report_failure(error);
        match self.fail_mode {
            FailMode::Open => Ok(None),
            // There is no local fallback here.
            _ => Err(Rejection::new(Reason::Global, UNKNOWN_WAIT)),
        }
    }

    /// Reports a decision, if the store could not make it.
    #[inline]
    pub(crate) fn report(&self, decision: &Decision) {
        if let Some(degraded) = decision.degraded {
            self.degraded(degraded);
        }
    }

    /// Does the same for a reservation or a place.
    pub(crate) fn report_reserved<T>(&self, result: &Result<(T, Decision), ReserveError>) {
        match result {
            Ok((_, decision)) | Err(ReserveError::Denied(decision)) => self.report(decision),
            Err(ReserveError::Store(error)) => self.report_failure(error),
            // The lease is invalid; the store was not called.
            Err(_) => {}
        }
    }

    /// Reports the failure of a store without a failure policy.
    #[cold]
    fn report_failure(&self, error: &StoreError) {
        let mode = if self.admits_without_store() { FailMode::Open } else { FailMode::Closed };
        self.degraded(Degraded::new(Source::FailMode(mode), FailCause::of(error)));
    }

    #[cold]
    fn degraded(&self, mode: Degraded) {
        if let Some(observer) = &self.observer {
            observer.degraded(mode);
        }
        let now = Timestamp::from_micros(self.clock.steady());
        if let Some(answers) = self.outages.count(now) {
            let (namespace, reason) = (self.namespace.as_str(), mode.cause.name());
            warn!(
                namespace, %mode, reason, answers,
                "store failed to decide for the guard; fail mode {mode} answers"
            );
        }
    }

    pub(crate) fn rejected(&self, class: &str, denied: Denied) -> Denied {
        if let Some(observer) = &self.observer {
            observer.rejected(class, &denied);
        }
        denied
    }

    pub(crate) fn unidentified(&self) {
        if let Some(observer) = &self.observer {
            observer.unidentified();
        }
    }

    pub(crate) fn place_lost(&self, class: &str) {
        if let Some(observer) = &self.observer {
            observer.place_lost(class);
        }
    }
}

impl Default for Backend {
    fn default() -> Self {
        Self::memory()
    }
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counters = match self.counters {
            Counters::Memory(_) => "memory",
            Counters::Store(_) => "store",
        };
        f.debug_struct("Backend")
            .field("counters", &counters)
            .field("fail_mode", &self.fail_mode)
            .field("namespace", &self.namespace.as_str())
            .finish_non_exhaustive()
    }
}
