//! Decisions for a store that cannot answer.

use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use smallvec::SmallVec;

use crate::{
    Batch, Check, Clock, Cost, Degraded, DenialCache, FailCause, FailMode, HoldersFuture, LeaseId,
    Limit, Outcome, Outcomes, Source, Store, StoreError, StoreFuture, Timestamp, Verb,
    denial_cache::Denial, outcome::Detail,
};

/// `retry_after` of a denial by [`FailMode::Closed`]: there is nothing to compute it from.
const CLOSED_RETRY_AFTER: Duration = Duration::from_secs(1);

/// A store that answers for `primary` when that fails, as the [`FailMode`] of each check says.
///
/// Denials by `primary` are cached until they expire and hold in every mode: a client that is over
/// its limit gains nothing by causing an overload.
///
/// Requests for admission (peek, acquire, reserve) always get an answer. Other verbs keep their
/// error, except that a reservation that was made locally is also used, committed or cancelled
/// locally.
///
/// The lease of a place under a [concurrency limit](crate::Limit::concurrency) is renewed as a
/// place is taken: `open` renews it, `closed` denies that, and the others take the place locally.
/// When the store is back and the lease has ended there, a place that was taken locally is taken in
/// the store again, if there is room.
///
/// ```
/// use std::{num::NonZeroU32, time::Duration};
///
/// use headgate::{
///     Batch, Check, Cost, FailMode, FailurePolicy, Key, Limit, BatchLimiter, Store, StoreError,
///     StoreFuture, SystemClock, Verb,
/// };
/// use headgate_store_memory::MemoryStore;
///
/// /// A store that is down.
/// struct Down;
///
/// impl Store for Down {
///     fn apply<'a>(&'a self, _: Verb, _: &'a Batch<'_>) -> StoreFuture<'a> {
///         StoreFuture::ready(Err(StoreError::Timeout(Duration::from_millis(100))))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let replicas = NonZeroU32::new(4).unwrap();
/// let local = MemoryStore::default();
/// let limiter = BatchLimiter::new(FailurePolicy::new(Down, local, replicas, SystemClock::new()));
///
/// let limit = Limit::token_bucket(100, Duration::from_secs(60))?;
/// let check = Check::new(Key::new("user:42")?, &limit, Cost::ONE)?;
/// let decision = limiter.check(&Batch::from(check.with_fail_mode(FailMode::Local))).await?;
/// // One of four replicas counts locally, with a quarter of the limit.
/// assert!(decision.allowed && decision.degraded.is_some());
/// assert_eq!(decision.remaining, 24);
///
/// let denied = limiter.check(&Batch::from(check.with_fail_mode(FailMode::Closed))).await?;
/// assert!(!denied.allowed);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct FailurePolicy<P, L, C> {
    primary: P,
    local: L,
    replicas: Replicas,
    clock: C,
    denials: DenialCache,
}

/// Number of replicas that share a limit while the store is down. Clones share it, and it can
/// change while they are in use.
#[derive(Clone, Debug)]
pub struct Replicas(Arc<AtomicU32>);

/// The cached denial of each check of a batch, if there is one.
type Remembered = SmallVec<[Option<Denial>; 2]>;

impl<P: Store, L: Store, C: Clock> FailurePolicy<P, L, C> {
    /// Answers for `primary` when it fails; `local` decides for [`FailMode::Capped`], and for
    /// [`FailMode::Local`] with the limit divided by `replicas`.
    pub fn new(primary: P, local: L, replicas: impl Into<Replicas>, clock: C) -> Self {
        let replicas = replicas.into();
        Self { primary, local, replicas, clock, denials: DenialCache::new() }
    }

    /// Updates the denial cache from an answer of the store. An admission costs nothing while the
    /// cache is empty.
    fn learn(&self, verb: Verb, batch: &Batch<'_>, outcomes: &[Outcome]) {
        let now = self.clock.steady();
        let admitted = verb.is_admission() && outcomes.iter().all(|outcome| outcome.allowed);
        if !(admitted && self.denials.is_idle(now)) {
            self.denials.learn(verb, batch, outcomes, now);
        }
    }

    /// Completes an answer of the store.
    async fn follow(&self, verb: Verb, batch: &Batch<'_>, outcomes: Outcomes) -> Outcomes {
        match verb {
            Verb::Reset => {
                // The local state is reset, too. Memory does not fail.
                drop(self.local.apply(Verb::Reset, batch).await);
                outcomes
            }
            Verb::Use { .. } | Verb::Commit(_) | Verb::Cancel(_)
                if !is_done(batch.checks(), &outcomes) =>
            {
                match (verb, self.settle(verb, batch).await) {
                    (Verb::Use { id, lease }, Some(settled)) if holds_places(batch) => {
                        self.move_back(id, lease, batch, settled, outcomes).await
                    }
                    (_, settled) => settled.unwrap_or(outcomes),
                }
            }
            _ => outcomes,
        }
    }

    async fn answer_instead(
        &self,
        verb: Verb,
        batch: &Batch<'_>,
        error: StoreError,
    ) -> Result<Outcomes, StoreError> {
        match verb {
            // While the store is down, a place is renewed as it would be taken.
            Verb::Use { id, lease } if holds_places(batch) => {
                self.decide(Verb::Reserve { id, lease }, batch, FailCause::of(&error)).await
            }
            Verb::Use { .. } | Verb::Commit(_) | Verb::Cancel(_) => {
                self.settle(verb, batch).await.ok_or(error)
            }
            verb if verb.is_admission() => match self.without_exact(verb, batch, &error).await {
                Some(outcomes) => Ok(outcomes),
                None => self.decide(verb, batch, FailCause::of(&error)).await,
            },
            _ => Err(error),
        }
    }

    /// Decides a batch without its [exact](Check::exact) checks, if that part of the store is up.
    /// Only they need their own state: the others are limits, which must hold.
    async fn without_exact(
        &self,
        verb: Verb,
        batch: &Batch<'_>,
        error: &StoreError,
    ) -> Option<Outcomes> {
        let is_limit = |check: &&Check<'_>| !check.is_exact();
        let limits = || batch.checks().iter().filter(is_limit).copied();
        // After other errors, the store may have applied the batch.
        let can_ask = matches!(error, StoreError::BreakerOpen);
        if !can_ask || limits().count() == batch.checks().len() {
            return None;
        }
        let limits = Batch::new(limits()).ok()?;
        let outcomes = self.primary.apply(verb, &limits).await.ok()?;
        self.learn(verb, &limits, &outcomes);
        let (now, mut outcomes) = (self.clock.now(), outcomes.into_iter());
        let answer = |check: &Check<'_>| {
            let own = if check.is_exact() { None } else { outcomes.next() };
            own.unwrap_or_else(|| uncounted(check, now))
        };
        Some(batch.checks().iter().map(answer).collect())
    }

    /// Uses, commits or cancels a reservation, if it was made locally.
    async fn settle(&self, verb: Verb, batch: &Batch<'_>) -> Option<Outcomes> {
        let counts = |check: &&Check<'_>| check.fail_mode().counts();
        let held = Batch::new(batch.checks().iter().filter(counts).copied()).ok()?;
        // Places have nothing to settle, so that a store allows it without them. Only their release
        // proves that they were held here.
        let verb = match verb {
            Verb::Commit(id) if holds_places(&held) => Verb::Cancel(id),
            verb => verb,
        };
        let outcomes = self.local.apply(verb, &held).await.ok()?;
        if !is_done(held.checks(), &outcomes) {
            return None;
        }
        let (now, mut outcomes) = (self.clock.now(), outcomes.into_iter());
        let answer = |check: &Check<'_>| {
            let own = if check.fail_mode().counts() { outcomes.next() } else { None };
            own.unwrap_or_else(|| uncounted(check, now))
        };
        let answers: Outcomes = batch.checks().iter().map(answer).collect();
        // A batch with a check that denies without the store was not made here.
        is_done(batch.checks(), &answers).then_some(answers)
    }

    /// Moves places to the store that were held locally during an outage. If there is no room,
    /// they are lost: the limit holds again.
    async fn move_back(
        &self,
        id: LeaseId,
        lease: Duration,
        batch: &Batch<'_>,
        local: Outcomes,
        ended: Outcomes,
    ) -> Outcomes {
        let Ok(moved) = self.primary.apply(Verb::Reserve { id, lease }, batch).await else {
            return local;
        };
        drop(self.settle(Verb::Cancel(id), batch).await);
        if is_done(batch.checks(), &moved) { moved } else { ended }
    }

    async fn decide(
        &self,
        verb: Verb,
        batch: &Batch<'_>,
        cause: FailCause,
    ) -> Result<Outcomes, StoreError> {
        let (now, steady) = (self.clock.now(), self.clock.steady());
        let checks = batch.checks();
        let remembered: Remembered =
            checks.iter().map(|check| self.denials.find(check, steady)).collect();
        let denies = |(check, denial): (&Check<'_>, &Option<Denial>)| {
            check.mode().can_block() && (denial.is_some() || check.fail_mode() == FailMode::Closed)
        };
        let is_denied = checks.iter().zip(&remembered).any(denies);
        // A batch that is denied anyway takes nothing locally.
        let verb = if is_denied { Verb::Peek } else { verb };
        let mut local = self.ask_locally(verb, batch, &remembered).await?.into_iter();
        let answer = |(check, denial): (&Check<'_>, &Option<Denial>)| match denial {
            Some(denial) => repeated(check, *denial, now, cause),
            None if check.fail_mode().counts() => {
                counted(check, local.next().unwrap_or_else(|| uncounted(check, now)), cause)
            }
            None => Outcome { degraded: Some(by_mode(check, cause)), ..uncounted(check, now) },
        };
        Ok(checks.iter().zip(&remembered).map(answer).collect())
    }

    /// Applies the checks that the local store decides, as one batch.
    async fn ask_locally(
        &self,
        verb: Verb,
        batch: &Batch<'_>,
        remembered: &Remembered,
    ) -> Result<Outcomes, StoreError> {
        let asked = || {
            let checks = batch.checks().iter().zip(remembered);
            checks.filter(|(check, denial)| denial.is_none() && check.fail_mode().counts())
        };
        let limits: SmallVec<[Limit; 2]> = asked().map(|(check, _)| self.part(check)).collect();
        let checks = asked().zip(&limits).map(|((check, _), limit)| {
            let cost = check.cost().min(Cost::new(limit.capacity()).unwrap_or(Cost::ONE));
            let local = Check::new(check.key(), limit, cost).ok()?.with_mode(check.mode());
            let local = if check.is_exact() { local.exact() } else { local };
            Some(check.place().map_or(local, |place| local.holding(place)))
        });
        let checks: SmallVec<[Check<'_>; 2]> = checks.flatten().collect();
        let Ok(batch) = Batch::new(checks) else {
            return Ok(Outcomes::new());
        };
        self.local.apply(verb, &batch).await
    }

    /// The part of its limit that a check has in this instance.
    fn part(&self, check: &Check<'_>) -> Limit {
        match check.fail_mode() {
            FailMode::Local => check.limit().share(self.replicas.get()),
            FailMode::Capped | FailMode::Open | FailMode::Closed => check.limit().clone(),
        }
    }
}

// === impl Replicas ===

impl Replicas {
    /// Changes the number.
    pub fn set(&self, replicas: NonZeroU32) {
        self.0.store(replicas.get(), Relaxed);
    }

    fn get(&self) -> NonZeroU32 {
        // It is only ever set to numbers above zero.
        NonZeroU32::new(self.0.load(Relaxed)).unwrap_or(NonZeroU32::MIN)
    }
}

impl From<NonZeroU32> for Replicas {
    fn from(replicas: NonZeroU32) -> Self {
        Self(Arc::new(AtomicU32::new(replicas.get())))
    }
}

/// Returns `true` if all checks are of concurrency limits, as those of a renewed lease are.
fn holds_places(batch: &Batch<'_>) -> bool {
    batch.checks().iter().all(|check| check.limit().places().is_some())
}

/// Returns `true` if every check that can block the batch was allowed, and at least one check was:
/// checks that only report never block.
fn is_done(checks: &[Check<'_>], outcomes: &[Outcome]) -> bool {
    let is_met =
        |(check, outcome): (&Check<'_>, &Outcome)| outcome.allowed || !check.mode().can_block();
    outcomes.iter().any(|outcome| outcome.allowed) && checks.iter().zip(outcomes).all(is_met)
}

const fn by_mode(check: &Check<'_>, cause: FailCause) -> Degraded {
    Degraded::new(Source::FailMode(check.fail_mode()), cause)
}

/// An earlier denial by the store, with the time that is left of it.
fn repeated(check: &Check<'_>, denial: Denial, at: Timestamp, cause: FailCause) -> Outcome {
    let Denial { retry_after, reset_after } = denial;
    Outcome {
        allowed: false,
        limit: check.limit().capacity(),
        remaining: 0,
        reset_after,
        retry_after,
        at,
        degraded: Some(Degraded::new(Source::RememberedDenial, cause)),
        detail: Detail::None,
        leased: false,
    }
}

/// A decision of the local store.
fn counted(check: &Check<'_>, local: Outcome, cause: FailCause) -> Outcome {
    let degraded = Some(by_mode(check, cause));
    if check.fail_mode() == FailMode::Capped && local.allowed {
        // Only the store knows how many units are left, so an admission reports all of them.
        return Outcome { degraded, ..uncounted(check, local.at) };
    }
    Outcome { degraded, ..local }
}

/// The answer to a check that is not counted anywhere.
fn uncounted(check: &Check<'_>, at: Timestamp) -> Outcome {
    let allowed = check.fail_mode() != FailMode::Closed;
    let capacity = check.limit().capacity();
    let wait = if allowed { Duration::ZERO } else { CLOSED_RETRY_AFTER };
    Outcome {
        allowed,
        limit: capacity,
        remaining: if allowed { capacity } else { 0 },
        reset_after: wait,
        retry_after: wait,
        at,
        degraded: None,
        detail: Detail::None,
        leased: false,
    }
}

impl<P: Store, L: Store, C: Clock> Store for FailurePolicy<P, L, C> {
    fn apply<'a>(&'a self, verb: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a> {
        let answer = self.primary.apply(verb, batch);
        if verb.is_admission()
            && let Some(outcomes) = answer.outcomes()
        {
            self.learn(verb, batch, outcomes);
            return answer;
        }
        StoreFuture::pending(async move {
            match answer.await {
                Ok(outcomes) => {
                    self.learn(verb, batch, &outcomes);
                    Ok(self.follow(verb, batch, outcomes).await)
                }
                Err(error) => self.answer_instead(verb, batch, error).await,
            }
        })
    }

    /// Those of the store alone: this instance does not know who holds places elsewhere.
    fn holders<'a>(&'a self, check: Check<'a>, max: usize) -> HoldersFuture<'a> {
        self.primary.holders(check, max)
    }
}
