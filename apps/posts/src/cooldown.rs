//! Once in five minutes, and no duplicates for a day: the limits of the application.

use std::time::Duration;

use headgate::{
    Batch, BatchError, BatchLimiter, Check, Cost, Decision, InvalidCheck, Key, KeyError, Limit,
    LimitError, Outcome, Reservation, ReserveError, StoreError, Verb,
};
use thiserror::Error;
use tracing::{error, info};

use crate::{claim::Claim, duplicates};

/// How long an author waits between posts.
pub const PAUSE: Duration = Duration::from_secs(300);

/// How long a reservation waits for its post to be saved. Whoever crashes in between gives it back after this.
pub const LEASE: Duration = Duration::from_secs(30);

/// Lets each author post once in [`PAUSE`], and each content be posted once in [`duplicates::PERIOD`].
///
/// This process first takes a turn of its own, in memory, and only then asks the store that all
/// processes share. So of many requests of one author one asks the store, and the others are refused
/// at once; and whatever the store does, a process lets an author post once in [`PAUSE`] at most.
#[derive(Debug)]
pub struct Cooldown {
    own: Counter,
    shared: Option<Counter>,
}

/// One place where posts are counted, with its limits.
#[derive(Debug)]
struct Counter {
    limiter: BatchLimiter,
    author: Limit,
    content: Limit,
}

/// What is held while a post is being saved: commit it, or cancel it.
#[derive(Debug)]
#[must_use = "a turn that is neither committed nor cancelled comes back when its lease ends"]
pub struct Turn {
    claim: Claim,
    own: Reservation,
    /// Nothing, when there is no shared store, or it did not answer.
    shared: Option<Reservation>,
}

/// Why a post may not be made now.
#[derive(Debug, Error)]
pub enum Refusal {
    /// Its author posted a short while ago.
    #[error("its author has to wait for {retry_after} s")]
    Limited {
        /// Until then, in whole seconds.
        retry_after: u64,
    },
    /// Somebody has said that.
    #[error("somebody has said that")]
    Duplicate,
    /// We ask nonsense. That is a bug and no outage: nobody passes because of it.
    #[error(transparent)]
    Bug(#[from] Nonsense),
}

/// Why a claim cannot be asked for.
#[derive(Debug, Error)]
pub enum Nonsense {
    /// An identifier is no key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A limit never has room.
    #[error(transparent)]
    Check(#[from] InvalidCheck),
    /// An identifier stands twice in a claim.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// The lease is none.
    #[error("the lease is too long")]
    Lease,
}

// === impl Cooldown ===

impl Cooldown {
    /// Counts in `own`, the memory of this process, alone.
    pub fn in_memory(own: BatchLimiter) -> Result<Self, LimitError> {
        let own = Counter::new(own, duplicates::PERIOD)?;
        Ok(Self { own, shared: None })
    }

    /// Counts in `shared`, together with other processes, and in `own`, the memory of this one.
    pub fn shared(shared: BatchLimiter, own: BatchLimiter) -> Result<Self, LimitError> {
        // A content is kept here no longer than an author: memory holds the posts of five minutes.
        let own = Counter::new(own, PAUSE)?;
        Ok(Self { own, shared: Some(Counter::new(shared, duplicates::PERIOD)?) })
    }

    /// Refuses a claim that has no room, and takes nothing.
    pub async fn check(&self, claim: &Claim) -> Result<(), Refusal> {
        self.own.look(claim).await?;
        match &self.shared {
            Some(shared) => shared.look(claim).await,
            None => Ok(()),
        }
    }

    /// Takes the author's turn and the content's, all of it or nothing. Of many who ask at once, one gets it.
    pub async fn reserve(&self, claim: Claim) -> Result<Turn, Refusal> {
        let own = match self.own.reserve(&claim).await? {
            Ok(own) => own,
            Err(error) => return Err(self.own.explain(&claim, error).await),
        };
        let Some(shared) = &self.shared else { return Ok(Turn { claim, own, shared: None }) };
        match shared.reserve(&claim).await? {
            Ok(held) => Ok(Turn { claim, own, shared: Some(held) }),
            Err(ReserveError::Store(error)) if !matches!(error, StoreError::Contended(_)) => {
                fails_open(&claim, &error);
                Ok(Turn { claim, own, shared: None })
            }
            Err(error) => {
                give_back(&self.own, own, &claim).await;
                Err(shared.explain(&claim, error).await)
            }
        }
    }

    /// The post is saved: from now on its author waits.
    pub async fn commit(&self, turn: Turn) {
        let Turn { claim, own, shared: held } = turn;
        keep(&self.own, own, &claim).await;
        if let (Some(shared), Some(held)) = (&self.shared, held) {
            keep(shared, held, &claim).await;
        }
    }

    /// The post is not saved: nothing was taken.
    pub async fn cancel(&self, turn: Turn) {
        let Turn { claim, own, shared: held } = turn;
        if let (Some(shared), Some(held)) = (&self.shared, held) {
            give_back(shared, held, &claim).await;
        }
        give_back(&self.own, own, &claim).await;
    }
}

// === impl Counter ===

impl Counter {
    fn new(limiter: BatchLimiter, unique: Duration) -> Result<Self, LimitError> {
        let (author, content) = (Limit::cooldown(PAUSE)?, Limit::cooldown(unique)?);
        Ok(Self { limiter, author, content })
    }

    /// The author's checks, and then the content's.
    fn batch<'a>(&'a self, claim: &'a Claim) -> Result<Batch<'a>, Nonsense> {
        let authors = claim.authors().map(|author| (author, &self.author));
        let content = claim.content().map(|content| (content, &self.content));
        let checks = authors.chain(content).map(|(identifier, limit)| {
            Ok(Check::new(Key::new(identifier.as_str())?, limit, Cost::ONE)?)
        });
        Ok(Batch::new(checks.collect::<Result<Vec<_>, Nonsense>>()?)?)
    }

    /// Refuses a claim that has no room, and takes nothing.
    async fn look(&self, claim: &Claim) -> Result<(), Refusal> {
        let batch = self.batch(claim)?;
        match self.limiter.apply(Verb::Peek, &batch).await {
            Ok(outcomes) => refuse_denied(claim, &outcomes),
            Err(error) => {
                fails_open(claim, &error);
                Ok(())
            }
        }
    }

    async fn reserve(&self, claim: &Claim) -> Result<Result<Reservation, ReserveError>, Nonsense> {
        let batch = self.batch(claim)?;
        Ok(self.limiter.reserve(&batch, LEASE).await.map(|(held, _)| held))
    }

    /// Tells why a turn was not to be had: a look says what others took.
    async fn explain(&self, claim: &Claim, error: ReserveError) -> Refusal {
        let retry_after = match error {
            ReserveError::Denied(decision) => decision.retry_after_secs(),
            // So many take the same at once that one of them gets it: this is a denial, not an outage.
            ReserveError::Store(_) => return limited(claim, 1),
            _ => return Nonsense::Lease.into(),
        };
        match self.look(claim).await {
            Err(refusal) => refusal,
            // They have given it back by now.
            Ok(()) => limited(claim, retry_after),
        }
    }
}

/// Keeps what was reserved, if it still is.
async fn keep(counter: &Counter, held: Reservation, claim: &Claim) {
    match counter.limiter.commit(held).await {
        Ok(true) => {}
        Ok(false) => error!(
            ip = claim.address(),
            nickname = claim.nickname(),
            "Saving took longer than the lease: the author need not wait"
        ),
        Err(error) => fails_open(claim, &error),
    }
}

async fn give_back(counter: &Counter, held: Reservation, claim: &Claim) {
    if let Err(error) = counter.limiter.cancel(held).await {
        error!(
            ip = claim.address(),
            nickname = claim.nickname(),
            %error,
            "Cannot give the turn back: it comes back when its lease ends"
        );
    }
}

/// An author who has to wait hears of that, whatever else is the matter.
fn refuse_denied(claim: &Claim, outcomes: &[Outcome]) -> Result<(), Refusal> {
    let (authors, content) = outcomes.split_at(claim.authors().count());
    let author = Decision::fold(authors);
    if !author.allowed {
        return Err(limited(claim, author.retry_after_secs()));
    }
    if content.iter().any(|outcome| !outcome.allowed) {
        info!(ip = claim.address(), nickname = claim.nickname(), "Refused a duplicate");
        return Err(Refusal::Duplicate);
    }
    Ok(())
}

fn limited(claim: &Claim, retry_after: u64) -> Refusal {
    error!(ip = claim.address(), nickname = claim.nickname(), retry_after, "Limited a post");
    Refusal::Limited { retry_after }
}

fn fails_open(claim: &Claim, error: &StoreError) {
    error!(
        ip = claim.address(),
        nickname = claim.nickname(),
        %error,
        "The store of cooldowns does not answer: this process alone decides"
    );
}

#[cfg(test)]
mod tests;
