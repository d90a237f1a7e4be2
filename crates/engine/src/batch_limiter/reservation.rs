//! Reservations of batches: reserve, use while the work runs, settle by what it cost.

use std::time::Duration;

use smallvec::SmallVec;
use thiserror::Error;

use super::BatchLimiter;
use crate::{
    Batch, Check, Decision, Lease, LeaseId, Outcome, Outcomes, OwnedBatch, Spent, Standing,
    StoreError, Timestamp, Verb,
};

/// Units that were taken and are returned unless they are committed in time.
#[derive(Clone, Debug)]
#[must_use = "a reservation that is not committed expires"]
pub struct Reservation {
    id: LeaseId,
    held: OwnedBatch,
    expires_at: Timestamp,
}

/// Error for a reservation that was not made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReserveError {
    /// A limit denied the request.
    #[error("denied: retry in {:?}", .0.retry_after)]
    Denied(Decision),
    /// The lease is too short or too long.
    #[error("a lease must be between 1ms and {max:?}, got {0:?}", max = Lease::MAX_DURATION)]
    Lease(Duration),
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Error for a reservation that was not used or settled. Nothing was taken or returned.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SettleError {
    /// The reservation has ended, or there never was one.
    #[error("the reservation has expired, or was committed or cancelled")]
    Ended,
    /// The reservation was settled for another cost.
    #[error("the reservation was settled for {0} already")]
    SettledFor(u64),
    /// There is not one cost for each check.
    #[error("expected a cost for each of {checks} checks, got {costs}")]
    Costs {
        /// Number of checks in the reservation.
        checks: usize,
        /// Number of costs.
        costs: usize,
    },
    /// The lease is too short or too long.
    #[error("a lease must be between 1ms and {max:?}, got {0:?}", max = Lease::MAX_DURATION)]
    Lease(Duration),
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The result of a settlement under one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settlement {
    /// Units that were charged.
    pub settled: u64,
    /// Units that were reserved and not spent.
    pub returned: u64,
    /// Units that were spent and not available, and were not charged.
    pub owed: u64,
    /// Units that the subject has now taken beyond the limit; 0 if units returned. They return
    /// first.
    pub debt: u64,
    /// The limit after the settlement.
    pub outcome: Outcome,
}

/// The state of a reservation that is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Units that may be spent before the next call. At 0, stop: a limit has no more.
    pub held: u64,
    /// Time at which the reservation expires, by the store's clock.
    pub expires_at: Timestamp,
}

impl BatchLimiter {
    /// Takes the cost of every check if all limits admit it, and returns it after `lease` unless
    /// the reservation is committed.
    ///
    /// For work that may fail: reserve, do it, then [`commit`](Self::commit) or
    /// [`cancel`](Self::cancel).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use headgate::{Batch, Check, Cost, Key, Limit, BatchLimiter};
    /// # use headgate_store_memory::MemoryStore;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let limiter = BatchLimiter::new(MemoryStore::default());
    /// # let limit = Limit::token_bucket(2, Duration::from_secs(60))?;
    /// # let batch = Batch::from(Check::new(Key::new("user:42")?, &limit, Cost::ONE)?);
    /// let (reservation, decision) = limiter.reserve(&batch, Duration::from_secs(30)).await?;
    /// assert_eq!(decision.remaining, 1);
    /// // The work succeeded: keep the units.
    /// assert!(limiter.commit(reservation).await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn reserve(
        &self,
        batch: &Batch<'_>,
        lease: Duration,
    ) -> Result<(Reservation, Decision), ReserveError> {
        bounded(lease)?;
        let id = LeaseId::random();
        let outcomes = self.apply(Verb::Reserve { id, lease }, batch).await?;
        let decision = Decision::fold(&outcomes);
        if !decision.allowed {
            return Err(ReserveError::Denied(decision));
        }
        let expires_at = decision.at + lease;
        Ok((Reservation { id, held: batch.to_owned(), expires_at }, decision))
    }

    /// Keeps the reserved units. Returns `false` if the reservation had expired.
    ///
    /// [`reserve`](Self::reserve) has an example.
    pub async fn commit(&self, reservation: Reservation) -> Result<bool, StoreError> {
        self.end(Verb::Commit(reservation.id), &reservation).await
    }

    /// Gives the reserved units back. Returns `false` if the reservation had expired.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use headgate::{Batch, Check, Cost, Key, Limit, BatchLimiter};
    /// # use headgate_store_memory::MemoryStore;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let limiter = BatchLimiter::new(MemoryStore::default());
    /// # let limit = Limit::token_bucket(2, Duration::from_secs(60))?;
    /// # let batch = Batch::from(Check::new(Key::new("user:42")?, &limit, Cost::ONE)?);
    /// let (reservation, _) = limiter.reserve(&batch, Duration::from_secs(30)).await?;
    /// // The work failed: return the units.
    /// assert!(limiter.cancel(reservation).await?);
    /// assert_eq!(limiter.peek(&batch).await?.remaining, 2);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn cancel(&self, reservation: Reservation) -> Result<bool, StoreError> {
        self.end(Verb::Cancel(reservation.id), &reservation).await
    }

    /// Settles a reservation for the units that were spent, the same number under every limit:
    /// gives the rest back, or takes what is missing.
    ///
    /// Units beyond the reservation are charged as far as they are available; [`Settlement::owed`]
    /// are not. With an [overdraft](Spent::with_overdraft) they are charged in any case, and the
    /// subject waits until its [debt](Settlement::debt) is paid: in a bucket as it refills, in a
    /// window until it ends.
    ///
    /// The same settlement can be repeated if its answer was lost, and is charged once.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use headgate::{Batch, Check, Cost, Key, Limit, BatchLimiter, Spent};
    /// # use headgate_store_memory::MemoryStore;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let limiter = BatchLimiter::new(MemoryStore::default());
    /// let tokens = Limit::fixed_window(10_000, Duration::from_secs(3600))?;
    /// let batch = Batch::from(Check::new(Key::new("tenant:7")?, &tokens, Cost::new(2_000)?)?);
    ///
    /// let (reservation, _) = limiter.reserve(&batch, Duration::from_secs(30)).await?;
    /// let settled = limiter.settle(&reservation, Spent::with_overdraft(700)).await?;
    /// assert_eq!((settled[0].settled, settled[0].returned), (700, 1_300));
    /// assert_eq!(limiter.peek(&batch).await?.remaining, 9_300);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn settle(
        &self,
        reservation: &Reservation,
        spent: Spent,
    ) -> Result<Vec<Settlement>, SettleError> {
        self.settle_by(reservation, |_| spent).await
    }

    /// Settles a reservation for the units that were spent under each limit, in the order of the
    /// batch.
    pub async fn settle_each(
        &self,
        reservation: &Reservation,
        spent: &[Spent],
    ) -> Result<Vec<Settlement>, SettleError> {
        reservation.has_checks(spent.len())?;
        self.settle_by(reservation, |i| spent[i]).await
    }

    /// Charges units that were spent to a reservation, which goes on: it is renewed for `lease`,
    /// and holds as many units again, if they are available.
    ///
    /// For work that spends units while it runs, such as a stream of tokens. Spend no more than the
    /// reservation [holds](Usage::held), then call this. Whatever is spent is charged, so if each
    /// call is for 1 unit, all streams of a subject together stay within the limit; if each is for
    /// up to n, and n were reserved, they exceed it by less than n.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use headgate::{Batch, Check, Cost, Key, Limit, BatchLimiter, Spent};
    /// # use headgate_store_memory::MemoryStore;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let limiter = BatchLimiter::new(MemoryStore::default());
    /// let limit = Limit::fixed_window(5, Duration::from_secs(3600))?;
    /// let batch = Batch::from(Check::new(Key::new("tenant:7")?, &limit, Cost::ONE)?);
    /// let lease = Duration::from_secs(30);
    ///
    /// let (reservation, _) = limiter.reserve(&batch, lease).await?;
    /// let mut produced = 0;
    /// loop {
    ///     produced += 1;
    ///     let usage = limiter.charge(&reservation, 1, lease).await?;
    ///     if usage.held == 0 {
    ///         break;
    ///     }
    /// }
    /// assert_eq!(produced, 5);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn charge(
        &self,
        reservation: &Reservation,
        units: u64,
        lease: Duration,
    ) -> Result<Usage, SettleError> {
        self.charge_by(reservation, |_| Spent::with_overdraft(units), lease).await
    }

    /// Charges units that were spent under each limit, in the order of the batch, as
    /// [`charge`](Self::charge) does. [`Usage::held`] is the fewest of the limits for which more
    /// than 0 was spent.
    pub async fn charge_each(
        &self,
        reservation: &Reservation,
        units: &[u64],
        lease: Duration,
    ) -> Result<Usage, SettleError> {
        reservation.has_checks(units.len())?;
        self.charge_by(reservation, |i| Spent::with_overdraft(units[i]), lease).await
    }

    /// Charges what was spent in all since the reservation was made, less what was charged before;
    /// otherwise it is [`charge`](Self::charge).
    ///
    /// It can be repeated if its answer was lost: the same total is charged once, and a total that
    /// a later call has overtaken charges nothing.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use headgate::{Batch, Check, Cost, Key, Limit, BatchLimiter};
    /// # use headgate_store_memory::MemoryStore;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let limiter = BatchLimiter::new(MemoryStore::default());
    /// let limit = Limit::fixed_window(100, Duration::from_secs(3600))?;
    /// let batch = Batch::from(Check::new(Key::new("tenant:7")?, &limit, Cost::new(10)?)?);
    /// let lease = Duration::from_secs(30);
    ///
    /// let (reservation, _) = limiter.reserve(&batch, lease).await?;
    /// for total in [10, 20, 20, 10] {
    ///     limiter.charge_up_to(&reservation, total, lease).await?;
    /// }
    /// // 20 were charged, and the reservation holds another 10.
    /// assert_eq!(limiter.peek(&batch).await?.remaining, 70);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn charge_up_to(
        &self,
        reservation: &Reservation,
        total: u64,
        lease: Duration,
    ) -> Result<Usage, SettleError> {
        self.charge_by(reservation, |_| Spent::in_total(total), lease).await
    }

    /// Charges what was spent in all under each limit, in the order of the batch, as
    /// [`charge_up_to`](Self::charge_up_to) does. [`Usage::held`] is the fewest of the limits whose
    /// total is not 0.
    pub async fn charge_each_up_to(
        &self,
        reservation: &Reservation,
        totals: &[u64],
        lease: Duration,
    ) -> Result<Usage, SettleError> {
        reservation.has_checks(totals.len())?;
        self.charge_by(reservation, |i| Spent::in_total(totals[i]), lease).await
    }

    async fn settle_by(
        &self,
        reservation: &Reservation,
        spent: impl Fn(usize) -> Spent,
    ) -> Result<Vec<Settlement>, SettleError> {
        let spaces = reservation.held.spaces();
        let batch = reservation.held.as_batch(&spaces).spending(spent);
        let outcomes = self.done(Verb::Commit(reservation.id), &batch).await?;
        Ok(outcomes.iter().map(Settlement::of).collect())
    }

    async fn charge_by(
        &self,
        reservation: &Reservation,
        spent: impl Fn(usize) -> Spent,
        lease: Duration,
    ) -> Result<Usage, SettleError> {
        if !is_bounded(lease) {
            return Err(SettleError::Lease(lease));
        }
        let spaces = reservation.held.spaces();
        let batch = reservation.held.as_batch(&spaces).spending(spent);
        let verb = Verb::Use { id: reservation.id, lease };
        let outcomes = self.done(verb, &batch).await?;
        // A place is held, not spent.
        let counted = |check: &Check<'_>| {
            check.limit().places().is_none() && check.was_spent().is_some_and(|it| it.units() > 0)
        };
        let all: SmallVec<[Usage; 2]> = outcomes.iter().filter_map(Usage::of).collect();
        let charged = batch.checks().iter().zip(&outcomes).filter(|(check, _)| counted(check));
        let fewest = charged.filter_map(|(_, outcome)| Usage::of(outcome));
        let fewest = fewest.min_by_key(|usage| usage.held).or_else(|| all.first().copied());
        fewest.ok_or(SettleError::Ended)
    }

    /// Applies `verb`, which must be allowed by all checks that take units.
    async fn done(&self, verb: Verb, batch: &Batch<'_>) -> Result<Outcomes, SettleError> {
        let outcomes = self.apply(verb, batch).await?;
        let binding = batch.checks().iter().zip(&outcomes).filter(|(it, _)| it.mode().can_block());
        let mut denied = binding.map(|(_, outcome)| outcome).filter(|outcome| !outcome.allowed);
        match denied.next().map(Outcome::reservation) {
            None => Ok(outcomes),
            Some(Some(
                Standing::Settled { spent, .. }
                | Standing::Owing { spent, .. }
                | Standing::InDebt { spent, .. },
            )) => Err(SettleError::SettledFor(spent)),
            Some(_) => Err(SettleError::Ended),
        }
    }

    async fn end(&self, verb: Verb, reservation: &Reservation) -> Result<bool, StoreError> {
        let spaces = reservation.held.spaces();
        Ok(self.decide(verb, &reservation.held.as_batch(&spaces)).await?.allowed)
    }
}

// === impl Reservation ===

impl Reservation {
    /// Identifies the reservation.
    pub const fn id(&self) -> LeaseId {
        self.id
    }

    /// Time at which it expires unless it is used, by the store's clock.
    pub const fn expires_at(&self) -> Timestamp {
        self.expires_at
    }

    fn has_checks(&self, costs: usize) -> Result<(), SettleError> {
        let checks = self.held.len();
        if checks == costs { Ok(()) } else { Err(SettleError::Costs { checks, costs }) }
    }
}

// === impl Settlement ===

impl Settlement {
    /// The settlement that the outcome of [`Verb::Commit`] reports.
    pub fn of(outcome: &Outcome) -> Self {
        let outcome = *outcome;
        let none = Self { settled: 0, returned: 0, owed: 0, debt: 0, outcome };
        match outcome.reservation() {
            Some(Standing::Settled { spent, returned }) => {
                Self { settled: spent, returned, ..none }
            }
            Some(Standing::Owing { spent, owed }) => Self { settled: spent - owed, owed, ..none },
            Some(Standing::InDebt { spent, debt }) => Self { settled: spent, debt, ..none },
            // Decided without the store, or by one that remembers no settlements.
            _ => none,
        }
    }
}

// === impl Usage ===

impl Usage {
    const fn of(outcome: &Outcome) -> Option<Self> {
        match outcome.reservation() {
            Some(Standing::Pending { held, expires_at }) => Some(Self { held, expires_at }),
            _ => None,
        }
    }
}

pub(super) fn is_bounded(lease: Duration) -> bool {
    (Lease::MIN_DURATION..=Lease::MAX_DURATION).contains(&lease)
}

fn bounded(lease: Duration) -> Result<(), ReserveError> {
    if is_bounded(lease) { Ok(()) } else { Err(ReserveError::Lease(lease)) }
}
