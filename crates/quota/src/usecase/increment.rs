//! Uses something of a quota.

use std::sync::Arc;

use headgate::{Cost, Timestamp};
use headgate_admin::FieldError;
use thiserror::Error;

use crate::{
    ActivePolicy, Committer, Entry, Increment, QuotaDomainService, QuotaId, QuotaUsage, Quotas,
    RepositoryError, Span, Verdict,
    committer::{NotCommitted, Queue, Tally},
    usecase::ReadUsage,
};

/// Uses something of a quota: what it admits is durable when it answers.
#[derive(Clone, Debug)]
pub struct IncrementUsage {
    quotas: Quotas,
    queue: Queue,
}

/// What became of an increment. A refusal is one too.
#[derive(Clone, Debug, PartialEq)]
pub struct Incremented {
    /// Whether it was admitted. If not, nothing was used.
    pub allowed: bool,
    /// Whether it was admitted before, under the same request id.
    pub replayed: bool,
    /// How much is used after it; for a replay, how much was after the first.
    pub usage: QuotaUsage,
}

/// Why nothing was decided.
#[derive(Clone, Debug, Error)]
pub enum IncrementError {
    /// What was asked for makes no sense.
    #[error("validation failed")]
    Invalid(Vec<FieldError>),
    /// Another amount was used under the same request id.
    #[error("request_id {0} was used with another amount in this period")]
    Conflict(String),
    /// Too many wait already.
    #[error("too many increments are waiting: try again")]
    Overloaded,
    /// There is no such policy, or the ledger cannot decide.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
}

/// One increment on its way.
struct Attempt<'a> {
    quotas: &'a Quotas,
    policy: &'a ActivePolicy,
    span: Arc<Span>,
    amount: u64,
    now: Timestamp,
}

// === impl IncrementUsage ===

impl IncrementUsage {
    /// The longest request id, in characters.
    pub const MAX_REQUEST_ID: usize = 128;

    /// How many increments may wait unless said otherwise.
    pub const CAPACITY: usize = 8_192;

    /// Increments usage of `quotas`, with at most `capacity` waiting. The committer must run for
    /// anything to be answered.
    pub fn new(quotas: &Quotas, capacity: usize) -> (Self, Committer) {
        let (queue, committer) = Committer::new(quotas, capacity);
        (Self { quotas: quotas.clone(), queue }, committer)
    }

    /// How many increments wait for the ledger.
    pub fn waiting(&self) -> usize {
        self.queue.waiting()
    }

    /// How much was committed.
    pub const fn tally(&self) -> &Arc<Tally> {
        self.queue.tally()
    }

    /// Uses `amount` of a policy, if so much is left in the period that it is now. An increment
    /// with a request id that was admitted before in this period is answered as it was then.
    pub async fn increment(
        &self,
        id: &QuotaId,
        amount: u64,
        request_id: Option<&str>,
    ) -> Result<Incremented, IncrementError> {
        let policy = self.quotas.find(id).await?;
        validate(&policy, amount, request_id).map_err(IncrementError::Invalid)?;
        let first = self.attempt(&policy, amount, request_id).await;
        // The commit has measured the ledger's clock, by which the period is now chosen.
        if let Err(IncrementError::Repository(RepositoryError::OutOfPeriod(_))) = first {
            return self.attempt(&policy, amount, request_id).await;
        }
        first
    }

    async fn attempt(
        &self,
        policy: &Arc<ActivePolicy>,
        amount: u64,
        request_id: Option<&str>,
    ) -> Result<Incremented, IncrementError> {
        let (now, id) = (self.quotas.now(), &policy.policy().id);
        let attempt = Attempt { quotas: &self.quotas, policy, span: policy.span(now), amount, now };
        if request_id.is_none()
            && let Some(refused) = attempt.refused_lately().await
        {
            return Ok(refused);
        }
        let increment = attempt.increment(request_id);
        let entry = self.queue.commit(Arc::clone(policy), increment).await?;
        match entry.verdict {
            Verdict::Impossible => Err(IncrementError::Invalid(vec![beyond(entry.limit)])),
            Verdict::Taken | Verdict::Replayed | Verdict::Refused => Ok(attempt.answer(entry)),
            Verdict::OutOfPeriod => Err(attempt.out_of_period()),
            Verdict::Disabled => self.uncounted(id).await,
            Verdict::NotFound => Err(RepositoryError::NotFound(id.clone()).into()),
            Verdict::Conflict => {
                Err(IncrementError::Conflict(request_id.unwrap_or_default().to_owned()))
            }
        }
    }

    /// A disabled policy admits everything and counts nothing.
    async fn uncounted(&self, id: &QuotaId) -> Result<Incremented, IncrementError> {
        let usage = ReadUsage::new(&self.quotas).usage(id).await?;
        Ok(Incremented { allowed: true, replayed: false, usage })
    }
}

/// Everything that is wrong with an amount and a request id. Under a request id that is one, the
/// ledger says whether the amount is beyond the limit: it may have been admitted before.
fn validate(
    policy: &ActivePolicy,
    amount: u64,
    request_id: Option<&str>,
) -> Result<(), Vec<FieldError>> {
    let misnamed = request_id.and_then(check_request_id);
    let checked = match request_id {
        Some(_) if misnamed.is_none() => check_range(amount),
        _ => check_amount(policy, amount),
    };
    let errors: Vec<FieldError> = checked.err().into_iter().chain(misnamed).collect();
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn check_request_id(text: &str) -> Option<FieldError> {
    let max = IncrementUsage::MAX_REQUEST_ID;
    let good = (1..=max).contains(&text.chars().count()) && !text.chars().any(char::is_control);
    (!good).then(|| FieldError {
        field: "request_id",
        reason: "invalid",
        message: format!("request_id must have 1 to {max} printable characters"),
    })
}

/// An amount that can be admitted at all.
pub(super) fn check_amount(policy: &ActivePolicy, amount: u64) -> Result<(), FieldError> {
    check_range(amount)?;
    let limit = policy.policy().spec.limit;
    if amount > limit { Err(beyond(limit)) } else { Ok(()) }
}

/// An amount that some policy could admit.
fn check_range(amount: u64) -> Result<(), FieldError> {
    let (reason, message) = match amount {
        0 => ("must_be_positive", "amount must be greater than 0".to_owned()),
        amount if amount > Cost::MAX => {
            ("too_large", format!("amount must be at most {}", Cost::MAX))
        }
        _ => return Ok(()),
    };
    Err(FieldError { field: "amount", reason, message })
}

fn beyond(limit: u64) -> FieldError {
    let message = format!("amount must be at most the limit of {limit}");
    FieldError { field: "amount", reason: "too_large", message }
}

// === impl IncrementError ===

impl From<NotCommitted> for IncrementError {
    fn from(error: NotCommitted) -> Self {
        match error {
            NotCommitted::Full => Self::Overloaded,
            NotCommitted::Failed(error) => Self::Repository(error),
        }
    }
}

// === impl Attempt ===

impl Attempt<'_> {
    /// The ledger's refusal of a moment ago, if the counter still says the same: a reset by another
    /// process shows there first.
    async fn refused_lately(&self) -> Option<Incremented> {
        let policy = self.policy.policy();
        let used = self.quotas.known.refusal(policy, &self.span, self.amount, self.now)?;
        let shown = self.quotas.counter.read(self.policy, &self.span).await.ok()??;
        let limit = policy.spec.limit;
        if QuotaDomainService::admits(shown, self.amount, limit) {
            return None;
        }
        Some(self.answer(Entry { verdict: Verdict::Refused, used, limit }))
    }

    fn increment(&self, request_id: Option<&str>) -> Increment {
        Increment {
            policy: self.policy.policy().id.clone(),
            span: Arc::clone(&self.span),
            amount: self.amount,
            request_id: request_id.map(str::to_owned),
            at: self.now,
        }
    }

    fn out_of_period(&self) -> IncrementError {
        RepositoryError::OutOfPeriod(self.span.name.clone()).into()
    }

    fn answer(&self, entry: Entry) -> Incremented {
        let allowed = matches!(entry.verdict, Verdict::Taken | Verdict::Replayed);
        let (policy, span) = (self.policy.policy(), Span::clone(&self.span));
        let usage = QuotaUsage::new(policy, span, (entry.used, entry.limit), self.now);
        Incremented { allowed, replayed: entry.verdict == Verdict::Replayed, usage }
    }
}
