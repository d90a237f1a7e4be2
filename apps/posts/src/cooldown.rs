//! Once in five minutes, and no duplicates for a day: the limits of the application.

use std::time::Duration;

use headgate::{
    Batch, BatchError, Check, CheckError, Cost, Decision, Key, KeyError, Limit, LimitError,
    Limiter, Outcome, Reservation, StoreError, Verb, limiter::ReserveError,
};
use thiserror::Error;
use tracing::{error, info};

use crate::{claim::Claim, duplicates};

/// How long an author waits between posts.
pub const PAUSE: Duration = Duration::from_secs(300);

/// How long a reservation waits for its post to be saved. Whoever crashes in between gives it back after this.
pub const LEASE: Duration = Duration::from_secs(30);

/// Lets each author post once in [`PAUSE`], and each content be posted once in [`duplicates::PERIOD`].
#[derive(Debug)]
pub struct Cooldown {
    limiter: Limiter,
    pause: Limit,
    unique: Limit,
}

/// What a look at the limits found, if it was not a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// There is room.
    Free,
    /// The store does not answer. That is no author's fault: they go on.
    Unknown,
}

/// What is held while a post is being saved: commit it, or cancel it.
#[derive(Debug)]
#[must_use = "a turn that is neither committed nor cancelled comes back when its lease ends"]
pub struct Turn {
    claim: Claim,
    /// Nothing, when the store did not answer.
    reservation: Option<Reservation>,
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
    Check(#[from] CheckError),
    /// An identifier stands twice in a claim.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// The lease is none.
    #[error("the lease is too long")]
    Lease,
}

// === impl Cooldown ===

impl Cooldown {
    /// Asks `limiter`.
    pub fn new(limiter: Limiter) -> Result<Self, LimitError> {
        let pause = Limit::cooldown(PAUSE)?;
        let unique = Limit::cooldown(duplicates::PERIOD)?;
        Ok(Self { limiter, pause, unique })
    }

    /// Looks whether there is room, and takes nothing: most refusals need no more.
    pub async fn check(&self, claim: &Claim) -> Result<Standing, Refusal> {
        let batch = self.batch(claim)?;
        match self.limiter.each(Verb::Peek, &batch).await {
            Ok(outcomes) => refuse_denied(claim, &outcomes).map(|()| Standing::Free),
            Err(error) => {
                fails_open(claim, &error);
                Ok(Standing::Unknown)
            }
        }
    }

    /// Takes the author's turn and the content's, all of it or nothing. Of many who ask at once, one gets it.
    pub async fn reserve(&self, claim: Claim, standing: Standing) -> Result<Turn, Refusal> {
        if standing == Standing::Unknown {
            // It was asked a moment ago, and its silence is on record: nobody waits for it twice.
            return Ok(Turn { claim, reservation: None });
        }
        let reserved = self.limiter.reserve(&self.batch(&claim)?, LEASE).await;
        match reserved {
            Ok((reservation, _)) => Ok(Turn { claim, reservation: Some(reservation) }),
            Err(ReserveError::Denied(decision)) => Err(self.lost(&claim, decision).await),
            // So many take the same at once that one of them gets it: this is a denial, not an outage.
            Err(ReserveError::Store(StoreError::Contended(_))) => Err(limited(&claim, 1)),
            Err(ReserveError::Store(error)) => {
                fails_open(&claim, &error);
                Ok(Turn { claim, reservation: None })
            }
            Err(ReserveError::Lease(_)) => Err(Nonsense::Lease.into()),
        }
    }

    /// The post is saved: from now on its author waits.
    pub async fn commit(&self, turn: Turn) {
        let Some(reservation) = turn.reservation else { return };
        match self.limiter.commit(reservation).await {
            Ok(true) => {}
            Ok(false) => error!(
                ip = turn.claim.address(),
                nickname = turn.claim.nickname(),
                "Saving took longer than the lease: the author need not wait"
            ),
            Err(error) => fails_open(&turn.claim, &error),
        }
    }

    /// The post is not saved: nothing was taken.
    pub async fn cancel(&self, turn: Turn) {
        let Some(reservation) = turn.reservation else { return };
        if let Err(error) = self.limiter.cancel(reservation).await {
            error!(
                ip = turn.claim.address(),
                nickname = turn.claim.nickname(),
                %error,
                "Cannot give the turn back: it comes back when its lease ends"
            );
        }
    }

    /// The author's checks, and then the content's.
    fn batch<'a>(&'a self, claim: &'a Claim) -> Result<Batch<'a>, Nonsense> {
        let authors = claim.authors().map(|author| (author, &self.pause));
        let content = claim.content().map(|content| (content, &self.unique));
        let checks = authors.chain(content).map(|(identifier, limit)| {
            Ok(Check::new(Key::new(identifier.as_str())?, limit, Cost::ONE)?)
        });
        Ok(Batch::new(checks.collect::<Result<Vec<_>, Nonsense>>()?)?)
    }

    /// Somebody was faster since the look: another look tells what they took.
    async fn lost(&self, claim: &Claim, decision: Decision) -> Refusal {
        match self.check(claim).await {
            Err(refusal) => refusal,
            // They have given it back by now.
            Ok(_) => limited(claim, decision.retry_after_secs()),
        }
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
        "The store of cooldowns does not answer: the post passes"
    );
}

#[cfg(test)]
mod tests;
