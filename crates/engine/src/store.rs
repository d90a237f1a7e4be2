//! What is asked of a store, and what it promises.

use std::{
    error::Error as StdError,
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use thiserror::Error;

use crate::{Batch, LeaseId, Outcomes};

/// Keeps subjects' states and changes them atomically.
///
/// One call does one verb to a whole batch. Its contract:
///
/// - **All or nothing.** If one check of a batch is refused, nothing is taken
///   from any, except as a check's [`Stake`](crate::Stake) says. No other call sees
///   the batch half done.
/// - **Exact.** The answers are those of [`Account`](crate::Account) at one
///   moment of one clock, the store's own, which is told in `Outcome::at`.
/// - **Time never runs backwards.** A clock that steps back stands still for a
///   subject until it has caught up.
/// - **A denial is an answer.** An error means that the store does not know.
pub trait Store: Send + Sync {
    /// Does `verb` to every check of `batch`; answers in the batch's order.
    fn apply<'a>(&'a self, verb: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a>;

    /// Whether it has circuit breakers of its own, one for each of its parts, so that a
    /// [`Breaker`](crate::Breaker) around it would only close off the parts that work.
    fn has_breakers(&self) -> bool {
        false
    }
}

/// What a store can be asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Would this be admitted? Takes nothing.
    Peek,
    /// Take it if it fits.
    Acquire,
    /// Take it if it fits, and give it back unless it is committed in time.
    Reserve {
        /// Names the reservation to [`Commit`](Self::Commit) and [`Cancel`](Self::Cancel).
        id: LeaseId,
        /// How long it waits for its commit.
        lease: Duration,
    },
    /// Keep what was reserved; refused when the lease has run out.
    Commit(LeaseId),
    /// Give back what was reserved; refused when the lease has run out.
    Cancel(LeaseId),
    /// Give back what was acquired: the oldest of it, where the algorithm remembers ages.
    Refund,
    /// Forget the subject: everything it took, and its reservations.
    Reset,
}

/// Why a store could not answer.
#[derive(Clone, Debug, Error)]
pub enum StoreError {
    /// The store cannot be reached, or went away during the call.
    #[error("store unavailable: {0}")]
    Unavailable(Arc<dyn StdError + Send + Sync>),
    /// The store did not answer in time. It may have done what was asked.
    #[error("store did not answer within {0:?}")]
    Timeout(Duration),
    /// The store failed often enough lately that it is not asked for a while.
    #[error("store is being left alone after repeated failures")]
    BreakerOpen,
    /// Too many calls wait for the store already: this one was never sent.
    #[error("too many calls to the store are in flight: not sent")]
    Overloaded,
    /// The store answered that it will not do this, though it may do other things: it has no
    /// memory left for a new subject, or its access rules forbid the key.
    #[error("store refused the call: {0}")]
    Refused(String),
    /// Others kept changing the subject first, in this many tries.
    #[error("too many others change this subject at the same time: gave up after {0} tries")]
    Contended(u32),
    /// The state is not one that this store wrote.
    #[error("store holds something else under this key: {0}")]
    Corrupt(String),
    /// This store cannot do that.
    #[error("not supported by this store: {0}")]
    Unsupported(&'static str),
}

/// A store's answer, now or later. An answer that is there needs no allocation.
#[must_use = "futures do nothing unless polled"]
pub enum StoreFuture<'a> {
    /// The answer is there.
    Ready(Option<Result<Outcomes, StoreError>>),
    /// The answer takes I/O.
    Pending(Pin<Box<dyn Future<Output = Result<Outcomes, StoreError>> + Send + 'a>>),
}

// === impl Store ===

impl<S: Store + ?Sized> Store for Arc<S> {
    fn apply<'a>(&'a self, verb: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a> {
        (**self).apply(verb, batch)
    }

    fn has_breakers(&self) -> bool {
        (**self).has_breakers()
    }
}

// === impl Verb ===

impl Verb {
    /// Whether it asks for admission, so that a failure policy can answer in the store's place.
    pub const fn asks(self) -> bool {
        matches!(self, Self::Peek | Self::Acquire | Self::Reserve { .. })
    }
}

// === impl StoreError ===

impl StoreError {
    /// An outage with its cause.
    pub fn unavailable(cause: impl StdError + Send + Sync + 'static) -> Self {
        Self::Unavailable(Arc::new(cause))
    }

    /// Whether the store itself is in trouble, not just one key or this process: a circuit
    /// breaker counts these.
    pub const fn is_outage(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Timeout(_) | Self::BreakerOpen)
    }

    /// Whether the same call may succeed later: everything but a state or a call that is wrong.
    pub const fn is_temporary(&self) -> bool {
        !matches!(self, Self::Corrupt(_) | Self::Unsupported(_))
    }

    /// Whether the call is known not to have reached the store.
    pub const fn is_unsent(&self) -> bool {
        matches!(self, Self::BreakerOpen | Self::Overloaded | Self::Unsupported(_))
    }
}

// === impl StoreFuture ===

impl<'a> StoreFuture<'a> {
    /// An answer that is there.
    pub fn ready(answer: Result<Outcomes, StoreError>) -> Self {
        Self::Ready(Some(answer))
    }

    /// An answer that takes I/O.
    pub fn pending(answer: impl Future<Output = Result<Outcomes, StoreError>> + Send + 'a) -> Self {
        Self::Pending(Box::pin(answer))
    }

    /// This answer after `f`, at once if it is there.
    pub(crate) fn map(
        self,
        f: impl FnOnce(Result<Outcomes, StoreError>) -> Result<Outcomes, StoreError> + Send + 'a,
    ) -> Self {
        match self {
            Self::Ready(answer) => Self::Ready(answer.map(f)),
            Self::Pending(answer) => Self::pending(async move { f(answer.await) }),
        }
    }
}

impl Future for StoreFuture<'_> {
    type Output = Result<Outcomes, StoreError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::Ready(answer) => answer.take().map_or(Poll::Pending, Poll::Ready),
            Self::Pending(answer) => answer.as_mut().poll(context),
        }
    }
}

impl fmt::Debug for StoreFuture<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready(answer) => f.debug_tuple("Ready").field(answer).finish(),
            Self::Pending(_) => f.write_str("Pending"),
        }
    }
}
