//! The limits: one post in five minutes, and no duplicates for a day.

use std::time::Duration;

use headgate::{
    Batch, BatchError, BatchLimiter, Check, Cost, Decision, InvalidCheck, Key, KeyError, Limit,
    LimitError, Outcome, Reservation, ReserveError, StoreError, Verb,
};
use thiserror::Error;
use tracing::{error, info};

use crate::{claim::Claim, duplicates};

/// Cooldown of an author.
pub const PAUSE: Duration = Duration::from_secs(300);

/// Lease of a reservation while its post is being saved. After a crash it expires by itself.
pub const LEASE: Duration = Duration::from_secs(30);

/// Admits one post of an author in [`PAUSE`], and one of the same content in
/// [`duplicates::PERIOD`].
///
/// A process first reserves in its own memory, and then in the store that all processes share. Of
/// many concurrent requests of one author, one reaches the store and the others are denied at once;
/// and even if the store fails, each process admits an author at most once in [`PAUSE`], and none
/// whom the store has [denied](crate::denials) there.
#[derive(Debug)]
pub struct Cooldown {
    own: Counter,
    shared: Option<Counter>,
}

/// A store of cooldowns, with its limits.
#[derive(Debug)]
struct Counter {
    limiter: BatchLimiter,
    author: Limit,
    content: Limit,
}

/// Reservation of a post while it is being saved: commit it, or cancel it.
#[derive(Debug)]
#[must_use = "a turn that is neither committed nor cancelled expires with its lease"]
pub struct Turn {
    claim: Claim,
    own: Reservation,
    /// `None` without a shared store, or if it did not answer.
    shared: Option<Reservation>,
}

/// Reason for denying a post.
#[derive(Debug, Error)]
pub enum Refusal {
    /// Its author's cooldown has not ended.
    #[error("rate limited: retry in {retry_after} s")]
    Limited {
        /// Time until it ends, in whole seconds.
        retry_after: u64,
    },
    /// The same content was posted within a day.
    #[error("duplicate post")]
    Duplicate,
    /// The request to the store is invalid. That is a bug, not an outage: it admits nothing.
    #[error(transparent)]
    Bug(#[from] InvalidClaim),
}

/// Error of converting a claim to a request to the store.
#[derive(Debug, Error)]
pub enum InvalidClaim {
    /// An identifier is not a valid key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A limit never admits the cost.
    #[error(transparent)]
    Check(#[from] InvalidCheck),
    /// An identifier is in a claim twice.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// The lease is invalid.
    #[error("the lease is too long")]
    Lease,
}

// === impl Cooldown ===

impl Cooldown {
    /// Counts in `own`, the memory of this process, only.
    pub fn in_memory(own: BatchLimiter) -> Result<Self, LimitError> {
        let own = Counter::new(own, duplicates::PERIOD)?;
        Ok(Self { own, shared: None })
    }

    /// Counts in `shared`, with other processes, and in `own`, the memory of this one.
    pub fn shared(shared: BatchLimiter, own: BatchLimiter) -> Result<Self, LimitError> {
        // Content is kept no longer than authors here: memory holds the posts of five minutes.
        let own = Counter::new(own, PAUSE)?;
        Ok(Self { own, shared: Some(Counter::new(shared, duplicates::PERIOD)?) })
    }

    /// Checks a claim without reserving it.
    pub async fn check(&self, claim: &Claim) -> Result<(), Refusal> {
        self.own.peek(claim).await?;
        match &self.shared {
            Some(shared) => shared.peek(claim).await,
            None => Ok(()),
        }
    }

    /// Reserves all keys of a claim, or none. Of many concurrent requests, one succeeds.
    pub async fn reserve(&self, claim: Claim) -> Result<Turn, Refusal> {
        let own = match self.own.reserve(&claim).await? {
            Ok(own) => own,
            Err(error) => return Err(self.own.explain(&claim, error).await),
        };
        let Some(shared) = &self.shared else { return Ok(Turn { claim, own, shared: None }) };
        match shared.reserve(&claim).await? {
            Ok(held) => Ok(Turn { claim, own, shared: Some(held) }),
            Err(ReserveError::Store(error)) if !matches!(error, StoreError::Contended(_)) => {
                log_fail_open(&claim, &error);
                Ok(Turn { claim, own, shared: None })
            }
            Err(error) => {
                release(&self.own, own, &claim).await;
                Err(shared.explain(&claim, error).await)
            }
        }
    }

    /// Starts the cooldown: the post is saved.
    pub async fn commit(&self, turn: Turn) {
        let Turn { claim, own, shared: held } = turn;
        commit(&self.own, own, &claim).await;
        if let (Some(shared), Some(held)) = (&self.shared, held) {
            commit(shared, held, &claim).await;
        }
    }

    /// Releases the reservation: the post is not saved.
    pub async fn cancel(&self, turn: Turn) {
        let Turn { claim, own, shared: held } = turn;
        if let (Some(shared), Some(held)) = (&self.shared, held) {
            release(shared, held, &claim).await;
        }
        release(&self.own, own, &claim).await;
    }
}

// === impl Counter ===

impl Counter {
    fn new(limiter: BatchLimiter, unique: Duration) -> Result<Self, LimitError> {
        let (author, content) = (Limit::cooldown(PAUSE)?, Limit::cooldown(unique)?);
        Ok(Self { limiter, author, content })
    }

    /// Checks of the author, then of the content.
    fn batch<'a>(&'a self, claim: &'a Claim) -> Result<Batch<'a>, InvalidClaim> {
        let authors = claim.authors().map(|author| (author, &self.author));
        let content = claim.content().map(|content| (content, &self.content));
        let checks = authors.chain(content).map(|(identifier, limit)| {
            Ok(Check::new(Key::new(identifier.as_str())?, limit, Cost::ONE)?)
        });
        Ok(Batch::new(checks.collect::<Result<Vec<_>, InvalidClaim>>()?)?)
    }

    /// Checks a claim without reserving it.
    async fn peek(&self, claim: &Claim) -> Result<(), Refusal> {
        let batch = self.batch(claim)?;
        match self.limiter.apply(Verb::Peek, &batch).await {
            Ok(outcomes) => refuse_denied(claim, &outcomes),
            Err(error) => {
                log_fail_open(claim, &error);
                Ok(())
            }
        }
    }

    async fn reserve(
        &self,
        claim: &Claim,
    ) -> Result<Result<Reservation, ReserveError>, InvalidClaim> {
        let batch = self.batch(claim)?;
        Ok(self.limiter.reserve(&batch, LEASE).await.map(|(held, _)| held))
    }

    /// Finds the reason of a failed reservation by a peek.
    async fn explain(&self, claim: &Claim, error: ReserveError) -> Refusal {
        let retry_after = match error {
            ReserveError::Denied(decision) => decision.retry_after_secs(),
            // Contention: another request is admitted, so this is a denial, not an outage.
            ReserveError::Store(_) => return limited(claim, 1),
            _ => return InvalidClaim::Lease.into(),
        };
        match self.peek(claim).await {
            Err(refusal) => refusal,
            // It was released in the meantime.
            Ok(()) => limited(claim, retry_after),
        }
    }
}

/// Commits a reservation, if it has not expired.
async fn commit(counter: &Counter, held: Reservation, claim: &Claim) {
    match counter.limiter.commit(held).await {
        Ok(true) => {}
        Ok(false) => error!(
            ip = claim.address(),
            nickname = claim.nickname(),
            "saving took longer than the lease; no cooldown was started"
        ),
        Err(error) => log_fail_open(claim, &error),
    }
}

async fn release(counter: &Counter, held: Reservation, claim: &Claim) {
    if let Err(error) = counter.limiter.cancel(held).await {
        error!(
            ip = claim.address(),
            nickname = claim.nickname(),
            %error,
            "failed to cancel a reservation; it expires with its lease"
        );
    }
}

/// Turns denied outcomes into a refusal; the author's cooldown comes before a duplicate.
fn refuse_denied(claim: &Claim, outcomes: &[Outcome]) -> Result<(), Refusal> {
    let (authors, content) = outcomes.split_at(claim.authors().count());
    let author = Decision::fold(authors);
    if !author.allowed {
        return Err(limited(claim, author.retry_after_secs()));
    }
    if content.iter().any(|outcome| !outcome.allowed) {
        info!(ip = claim.address(), nickname = claim.nickname(), "duplicate post");
        return Err(Refusal::Duplicate);
    }
    Ok(())
}

fn limited(claim: &Claim, retry_after: u64) -> Refusal {
    error!(ip = claim.address(), nickname = claim.nickname(), retry_after, "post rate limited");
    Refusal::Limited { retry_after }
}

fn log_fail_open(claim: &Claim, error: &StoreError) {
    error!(
        ip = claim.address(),
        nickname = claim.nickname(),
        %error,
        "store of cooldowns failed; this process alone decides"
    );
}

#[cfg(test)]
mod tests;
