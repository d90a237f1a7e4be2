//! The [`Store`] trait: the operations of stores, and their guarantees.

mod error;
mod future;
mod holders;

use std::{future::ready, sync::Arc, time::Duration};

use crate::{Batch, Check, LeaseId, Outcome, Outcomes};

pub use error::StoreError;
pub use future::StoreFuture;
pub use holders::{Holders, HoldersFuture};

/// Holds the state of every subject and changes it atomically.
///
/// One call applies one [`Verb`] to a whole [`Batch`]. Every store guarantees:
///
/// - **All or nothing.** If one check of a batch is denied, nothing is taken for any of them,
///   except as a check's [`CheckMode`](crate::CheckMode) says. No other call sees a batch half
///   applied.
/// - **Exact.** The answers are those of [`Account`](crate::Account) at one point in time of the
///   store's own clock, which is reported in [`Outcome::at`].
/// - **Time never runs backwards.** If the clock goes backwards, a subject's time stops until the
///   clock has caught up.
/// - **A denial is an answer.** An error means that the store does not know.
pub trait Store: Send + Sync {
    /// Applies `verb` to every check of `batch`; the answers are in the batch's order.
    fn apply<'a>(&'a self, verb: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a>;

    /// Lists at most `max` holders of the concurrency limit of `check`, and changes nothing.
    ///
    /// It is for operators, not for decisions. A store that keeps no state of its own and cannot
    /// ask another one does not support it.
    fn holders<'a>(&'a self, _check: Check<'a>, _max: usize) -> HoldersFuture<'a> {
        Box::pin(ready(Err(StoreError::Unsupported("a list of holders"))))
    }

    /// Returns `true` if the store has circuit breakers of its own, one for each of its parts. A
    /// [`Breaker`](crate::Breaker) around such a store never opens, because it would also cut off
    /// the parts that work.
    fn has_breakers(&self) -> bool {
        false
    }
}

/// A [`Store`] that answers without waiting and never fails, because its state is in this process.
///
/// A [`RateLimiter`](crate::RateLimiter) over such a store decides synchronously, too.
pub trait SyncStore: Store {
    /// Applies `verb` to every check of `batch`, as [`Store::apply`] does.
    fn apply_now(&self, verb: Verb, batch: &Batch<'_>) -> Outcomes;

    /// Applies `verb` to a single check.
    fn apply_one(&self, verb: Verb, check: Check<'_>) -> Outcome {
        self.apply_now(verb, &check.into())[0]
    }
}

/// An operation on a [`Batch`].
///
/// It is exhaustive on purpose: a store that cannot do one of these must not compile. A new verb is
/// a breaking change for stores, and none for their users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Reports whether the cost would be admitted; takes nothing.
    Peek,
    /// Takes the cost if it is admitted.
    Acquire,
    /// Takes the cost if it is admitted, and returns it unless it is committed in time.
    /// [`Outcome::reservation`] has the time at which it expires.
    ///
    /// It can be repeated: a reservation that is pending stays as it is, and is allowed; one that
    /// is remembered as settled is denied.
    Reserve {
        /// Identifies the reservation in [`Use`](Self::Use), [`Commit`](Self::Commit) and
        /// [`Cancel`](Self::Cancel).
        id: LeaseId,
        /// Time until the reservation expires.
        lease: Duration,
    },
    /// Charges units to a reservation, makes it hold as many again if they are available, and
    /// renews it; denied if it has ended.
    ///
    /// The units are those that the check [spent](crate::Check::spent), or else its cost; of a
    /// [total](crate::Spent::in_total), those that exceed what the reservation has used. They have
    /// been spent, so they are charged in any case: first those that the reservation holds, then
    /// those that the limit has left, then as a debt of up to
    /// [`MAX_DEBT`](crate::Limit::MAX_DEBT) times the limit. If the reservation holds none
    /// afterwards, there are no more.
    Use {
        /// The reservation.
        id: LeaseId,
        /// Time from now until it expires.
        lease: Duration,
    },
    /// Ends a reservation and keeps its units; denied if it has ended.
    ///
    /// A check that says how many units were [spent](crate::Check::spent) in all keeps as many.
    /// What is left of the reservation returns; what is missing is taken, as far as it is
    /// available or, with an overdraft, up to a debt of [`MAX_DEBT`](crate::Limit::MAX_DEBT) times
    /// the limit. Units that were [used](Self::Use) stay used. The same settlement can be
    /// repeated: it takes nothing, and is allowed while it is
    /// [remembered](crate::lease::Settled::MAX_REMEMBERED).
    Commit(LeaseId),
    /// Ends a reservation and gives back the units that were not used; denied if it has ended.
    Cancel(LeaseId),
    /// Gives acquired units back, as far as they still count: see
    /// [`TakenAt`](crate::algorithm::TakenAt). Always allowed.
    ///
    /// The check says [when they were taken](crate::Check::taken_at).
    Refund,
    /// Takes the cost if it is admitted, and then as much of each check's
    /// [extra](crate::Check::with_extra) as is available: [`Outcome::grant`] has it. See
    /// [`grant`](crate::grant) for what a grant is.
    ///
    /// A store may grant nothing, if it cannot keep the grant.
    Lease,
    /// Returns units of a grant; denied, and nothing returns, if
    /// [the grant has ended](crate::Check::from_grant_until).
    GiveBack,
    /// Deletes the subject's state, reservations and grants included.
    Reset,
}

// === impl Store ===

impl<S: Store + ?Sized> Store for Arc<S> {
    fn apply<'a>(&'a self, verb: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a> {
        (**self).apply(verb, batch)
    }

    fn holders<'a>(&'a self, check: Check<'a>, max: usize) -> HoldersFuture<'a> {
        (**self).holders(check, max)
    }

    fn has_breakers(&self) -> bool {
        (**self).has_breakers()
    }
}

impl<S: SyncStore + ?Sized> SyncStore for Arc<S> {
    fn apply_now(&self, verb: Verb, batch: &Batch<'_>) -> Outcomes {
        (**self).apply_now(verb, batch)
    }

    fn apply_one(&self, verb: Verb, check: Check<'_>) -> Outcome {
        (**self).apply_one(verb, check)
    }
}

// === impl Verb ===

impl Verb {
    /// Returns `true` if it asks for admission, so that a [`FailurePolicy`](crate::FailurePolicy)
    /// can answer for the store.
    pub const fn is_admission(self) -> bool {
        matches!(self, Self::Peek | Self::Acquire | Self::Lease | Self::Reserve { .. })
    }

    /// Returns `true` if the check's limit applies to the state from here on, so that what was taken
    /// under another one returns at its rate.
    ///
    /// A verb that names a reservation or a grant is not trusted with that: its limit may come from
    /// outside with the name, and must never make units return sooner. It applies only a lower rate,
    /// and only if the reservation or grant exists.
    ///
    /// Nor does a refund: other refunds have to know the rate at which their units may have
    /// refilled.
    pub(crate) const fn adopts_limit(self) -> bool {
        match self {
            Self::Acquire | Self::Lease | Self::Reserve { .. } | Self::Reset => true,
            Self::Peek
            | Self::Refund
            | Self::Use { .. }
            | Self::Commit(_)
            | Self::Cancel(_)
            | Self::GiveBack => false,
        }
    }

    /// Returns `true` if it names a reservation or a grant, with which its limit may come from
    /// outside.
    pub const fn is_by_name(self) -> bool {
        match self {
            Self::Use { .. } | Self::Commit(_) | Self::Cancel(_) | Self::GiveBack => true,
            Self::Peek
            | Self::Acquire
            | Self::Lease
            | Self::Reserve { .. }
            | Self::Refund
            | Self::Reset => false,
        }
    }

    /// The reservation that it makes, uses or ends.
    pub const fn reservation(self) -> Option<LeaseId> {
        match self {
            Self::Reserve { id, .. }
            | Self::Use { id, .. }
            | Self::Commit(id)
            | Self::Cancel(id) => Some(id),
            Self::Peek
            | Self::Acquire
            | Self::Refund
            | Self::Lease
            | Self::GiveBack
            | Self::Reset => None,
        }
    }
}
