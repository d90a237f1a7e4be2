//! Consumes units of a quota.

use std::sync::Arc;

use headgate::{Cost, Timestamp};
use headgate_admin::FieldError;
use thiserror::Error;

use crate::{
    ActivePolicy, Committer, Increment, IncrementOutcome, IncrementResult, PeriodSpan, QuotaId,
    QuotaUsage, Quotas, RepositoryError,
    committer::{NotCommitted, Queue, Tally},
    usecase::ReadUsage,
};

/// Consumes units of a quota. An admitted increment is durable when the call returns.
#[derive(Clone, Debug)]
pub struct IncrementUsage {
    quotas: Quotas,
    queue: Queue,
}

/// The result of an increment, admitted or denied.
#[derive(Clone, Debug, PartialEq)]
pub struct Incremented {
    /// `true` if it was admitted. Otherwise nothing was charged.
    pub allowed: bool,
    /// `true` if it was admitted before, under the same request id.
    pub replayed: bool,
    /// Usage after it; for a replay, usage after the original.
    pub usage: QuotaUsage,
}

/// An error of an increment.
#[derive(Clone, Debug, Error)]
pub enum IncrementError {
    /// The amount or request id is invalid.
    #[error("validation failed")]
    Invalid(Vec<FieldError>),
    /// Another amount was charged under the same request id.
    #[error("request_id {0} was used with another amount in this period")]
    Conflict(String),
    /// It was charged under the same request id, and refunded.
    #[error("request_id {0} was refunded in this period; send a new one")]
    Refunded(String),
    /// The queue is full.
    #[error("too many increments are waiting; try again")]
    Overloaded,
    /// The policy does not exist, or the ledger failed.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
}

/// An increment in flight.
struct Attempt<'a> {
    quotas: &'a Quotas,
    policy: &'a ActivePolicy,
    span: Arc<PeriodSpan>,
    amount: u64,
    now: Timestamp,
}

// === impl IncrementUsage ===

impl IncrementUsage {
    /// Maximum length of a request id in characters.
    pub const MAX_REQUEST_ID: usize = 128;

    /// Default capacity of the queue.
    pub const CAPACITY: usize = 8_192;

    /// Creates the use case with a queue of `capacity` increments. Calls complete only while the
    /// committer runs.
    pub fn new(quotas: &Quotas, capacity: usize) -> (Self, Committer) {
        let (queue, committer) = Committer::new(quotas, capacity);
        (Self { quotas: quotas.clone(), queue }, committer)
    }

    /// Returns the number of operations that wait for the ledger.
    pub fn waiting(&self) -> usize {
        self.queue.waiting()
    }

    /// Returns the counts of transactions and operations.
    pub const fn tally(&self) -> &Arc<Tally> {
        self.queue.tally()
    }

    /// Returns the state and the queue, for other operations that the committer commits.
    pub(super) const fn parts(&self) -> (&Quotas, &Queue) {
        (&self.quotas, &self.queue)
    }

    /// Consumes `amount` if that much is left in the current period. A request id that was charged
    /// before in this period returns the original result.
    pub async fn increment(
        &self,
        id: &QuotaId,
        amount: u64,
        request_id: Option<&str>,
    ) -> Result<Incremented, IncrementError> {
        let policy = self.quotas.find(id).await?;
        validate(&policy, amount, request_id).map_err(IncrementError::Invalid)?;
        let first = self.attempt(&policy, amount, request_id).await;
        // The commit has measured the ledger's clock: retry with the period by that.
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
            && let Some(denied) = attempt.recent_denial().await
        {
            return Ok(denied);
        }
        let increment = attempt.increment(request_id);
        let result = self.queue.commit(Arc::clone(policy), increment).await?;
        let Some(result) = result.increment() else {
            return Err(RepositoryError::mismatched("an increment").into());
        };
        match result.outcome {
            IncrementOutcome::ExceedsLimit => {
                Err(IncrementError::Invalid(vec![exceeds_limit(result.units.limit)]))
            }
            IncrementOutcome::Charged | IncrementOutcome::Replayed | IncrementOutcome::Denied => {
                Ok(attempt.incremented(result))
            }
            IncrementOutcome::OutOfPeriod => Err(attempt.out_of_period()),
            IncrementOutcome::Disabled => self.uncharged(id).await,
            IncrementOutcome::NotFound => Err(RepositoryError::NotFound(id.clone()).into()),
            IncrementOutcome::Conflict => {
                Err(IncrementError::Conflict(request_id.unwrap_or_default().to_owned()))
            }
            IncrementOutcome::Refunded => {
                Err(IncrementError::Refunded(request_id.unwrap_or_default().to_owned()))
            }
        }
    }

    /// Admits an increment of a disabled policy, which charges nothing.
    async fn uncharged(&self, id: &QuotaId) -> Result<Incremented, IncrementError> {
        let usage = ReadUsage::new(&self.quotas).usage(id).await?;
        Ok(Incremented { allowed: true, replayed: false, usage })
    }
}

/// Validates amount and request id. With a valid request id, the ledger decides whether the amount
/// exceeds the limit, because it may have been charged before under a higher one.
fn validate(
    policy: &ActivePolicy,
    amount: u64,
    request_id: Option<&str>,
) -> Result<(), Vec<FieldError>> {
    let invalid_id = request_id.and_then(check_request_id);
    let checked = match request_id {
        Some(_) if invalid_id.is_none() => check_range(amount),
        _ => check_amount(policy, amount),
    };
    let errors: Vec<FieldError> = checked.err().into_iter().chain(invalid_id).collect();
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

pub(super) fn check_request_id(text: &str) -> Option<FieldError> {
    let max = IncrementUsage::MAX_REQUEST_ID;
    let valid = (1..=max).contains(&text.chars().count()) && !text.chars().any(char::is_control);
    (!valid).then(|| FieldError {
        field: "request_id",
        reason: "invalid",
        message: format!("request_id must have 1 to {max} printable characters"),
    })
}

/// Checks that the policy can admit the amount at all.
pub(super) fn check_amount(policy: &ActivePolicy, amount: u64) -> Result<(), FieldError> {
    check_range(amount)?;
    let limit = policy.policy().spec.limit;
    if amount > limit { Err(exceeds_limit(limit)) } else { Ok(()) }
}

/// Checks that some policy could admit the amount.
pub(super) fn check_range(amount: u64) -> Result<(), FieldError> {
    let (reason, message) = match amount {
        0 => ("must_be_positive", "amount must be greater than 0".to_owned()),
        amount if amount > Cost::MAX => {
            ("too_large", format!("amount must be at most {}", Cost::MAX))
        }
        _ => return Ok(()),
    };
    Err(FieldError { field: "amount", reason, message })
}

pub(super) fn exceeds_limit(limit: u64) -> FieldError {
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
    /// Returns a denial without a commit, if the ledger denied as much within the last second and
    /// the counter still confirms it: a reset by another process shows there first.
    async fn recent_denial(&self) -> Option<Incremented> {
        let policy = self.policy.policy();
        let units = self.quotas.recent.recent_denial(policy, &self.span, self.amount, self.now)?;
        let shown = self.quotas.counter.read(self.policy, &self.span).await.ok()??;
        if QuotaUsage::admits(shown, self.amount, units.limit) {
            return None;
        }
        Some(self.incremented(IncrementResult { outcome: IncrementOutcome::Denied, units }))
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

    fn incremented(&self, result: IncrementResult) -> Incremented {
        let replayed = result.outcome == IncrementOutcome::Replayed;
        let allowed = replayed || result.outcome == IncrementOutcome::Charged;
        let (policy, span) = (self.policy.policy(), PeriodSpan::clone(&self.span));
        let usage = QuotaUsage::new(policy, span, result.units, self.now);
        Incremented { allowed, replayed, usage }
    }
}
