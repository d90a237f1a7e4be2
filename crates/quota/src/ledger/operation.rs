//! Operations on usage, and the ledger's results of them.

use std::{sync::Arc, time::Duration};

use headgate::Timestamp;

use crate::{PeriodSpan, QuotaId, Reservation, ReservationId, SettledFor, Units};

/// A request to change usage. The ledger decides operations in order, many in one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Charges units.
    Increment(Increment),
    /// Sets units aside.
    Reserve(Reserve),
    /// Uses, settles or cancels a reservation.
    Change(ReservationChange),
    /// Gives back what an increment charged.
    Refund(Refund),
}

/// A request to charge units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Increment {
    /// Id of the policy.
    pub policy: QuotaId,
    /// Period in which the request was admitted.
    pub span: Arc<PeriodSpan>,
    /// Units.
    pub amount: u64,
    /// Idempotency key.
    pub request_id: Option<String>,
    /// Time of admission.
    pub at: Timestamp,
}

/// A request to set units aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// Id of the policy.
    pub policy: QuotaId,
    /// Period in which the request was admitted, to which the reservation belongs.
    pub span: Arc<PeriodSpan>,
    /// Id of the new reservation.
    pub id: ReservationId,
    /// Units.
    pub amount: u64,
    /// Time to live.
    pub ttl: Duration,
    /// Idempotency key.
    pub request_id: Option<String>,
    /// Time of admission.
    pub at: Timestamp,
}

/// A request to change a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationChange {
    /// Id of the policy.
    pub policy: QuotaId,
    /// Id of the reservation.
    pub id: ReservationId,
    /// The change.
    pub action: ReservationAction,
    /// Time of admission.
    pub at: Timestamp,
}

/// A change of a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReservationAction {
    /// Charges units while the reservation stays pending.
    Use {
        /// Units.
        amount: u64,
        /// Idempotency key.
        request_id: Option<String>,
    },
    /// Charges the units it took in all, and ends it.
    Settle(SettledFor),
    /// Ends it.
    Cancel,
}

/// A request to give back what an increment charged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refund {
    /// Id of the policy.
    pub policy: QuotaId,
    /// The current period, in which the increment was charged.
    pub span: Arc<PeriodSpan>,
    /// Idempotency key of the increment.
    pub request_id: String,
    /// Time of admission.
    pub at: Timestamp,
}

/// The ledger's answer to one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    /// Its result.
    pub result: OperationResult,
    /// Change of usage, or a denial; `None` if neither.
    pub effect: Option<Effect>,
    /// `true` if it recorded an event.
    pub has_event: bool,
}

/// The result of one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperationResult {
    /// Of an increment.
    Increment(IncrementResult),
    /// Of a reservation or a change of one.
    Reservation(ReservationResult),
    /// Of a refund.
    Refund(RefundResult),
}

/// The effect of an operation on usage, with that of reservations that expired before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Units after it.
    pub units: Units,
    /// Units used or reserved that were not before.
    pub added: u64,
    /// `true` if fewer units are used or reserved than before.
    pub lowered: bool,
    /// `true` if fewer units are used than before.
    pub refunded: bool,
    /// `true` if the exceeded event of the period is recorded.
    pub exceeded: bool,
}

/// The result of an increment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IncrementResult {
    /// Outcome: charged, or the reason why not.
    pub outcome: IncrementOutcome,
    /// Units after it; for a replay, units after the original.
    pub units: Units,
}

/// The outcome of an increment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncrementOutcome {
    /// It was charged.
    Charged,
    /// It was charged before under the same request id.
    Replayed,
    /// It exceeds the units left: nothing was charged.
    Denied,
    /// It exceeds the limit by itself: nothing was charged, and no event is recorded.
    ExceedsLimit,
    /// The period is not the current one by the ledger's clock: nothing was charged.
    OutOfPeriod,
    /// The policy is disabled: everything is admitted and nothing charged.
    Disabled,
    /// Another amount was charged under the same request id.
    Conflict,
    /// It was charged under the same request id, and refunded.
    Refunded,
    /// The policy does not exist any more.
    NotFound,
}

/// The result of an operation on a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationResult {
    /// Outcome: done, or the reason why not.
    pub outcome: ReservationOutcome,
    /// Units of its period after it.
    pub units: Units,
    /// The reservation after it, if it exists.
    pub reservation: Option<Box<Reservation>>,
}

/// The outcome of an operation on a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservationOutcome {
    /// It was done.
    Done,
    /// It was done before.
    Replayed,
    /// It exceeds the units left: nothing was reserved.
    Denied,
    /// It exceeds the limit by itself: nothing was reserved, and no event is recorded.
    ExceedsLimit,
    /// The period is not the current one by the ledger's clock: nothing was reserved.
    OutOfPeriod,
    /// Another amount was reserved or used under the same request id.
    Conflict,
    /// The reservation has ended in another way: its status says how.
    Ended,
    /// There is no such reservation.
    Unknown,
    /// The policy does not exist any more.
    NotFound,
}

/// The result of a refund.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefundResult {
    /// Outcome: refunded, or the reason why not.
    pub outcome: RefundOutcome,
    /// Units that came back.
    pub refunded: u64,
    /// Units after it.
    pub units: Units,
}

/// The outcome of a refund.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefundOutcome {
    /// The charge was given back.
    Refunded,
    /// It was given back before.
    Replayed,
    /// Nothing was charged under this request id in this period.
    Unknown,
    /// The period is not the current one by the ledger's clock: nothing was given back.
    OutOfPeriod,
    /// The policy does not exist any more.
    NotFound,
}

// === impl Operation ===

impl Operation {
    /// Returns the id of the policy.
    pub const fn policy(&self) -> &QuotaId {
        match self {
            Self::Increment(increment) => &increment.policy,
            Self::Reserve(reserve) => &reserve.policy,
            Self::Change(change) => &change.policy,
            Self::Refund(refund) => &refund.policy,
        }
    }

    /// Returns the time of admission.
    pub const fn at(&self) -> Timestamp {
        match self {
            Self::Increment(increment) => increment.at,
            Self::Reserve(reserve) => reserve.at,
            Self::Change(change) => change.at,
            Self::Refund(refund) => refund.at,
        }
    }

    /// Returns the period that must be the current one; `None` if any will do.
    pub const fn span(&self) -> Option<&Arc<PeriodSpan>> {
        match self {
            Self::Increment(increment) => Some(&increment.span),
            Self::Reserve(reserve) => Some(&reserve.span),
            Self::Refund(refund) => Some(&refund.span),
            Self::Change(_) => None,
        }
    }

    /// Returns the name of the period whose usage it changes.
    pub fn period_name(&self) -> &str {
        match self {
            Self::Change(change) => change.id.period_name(),
            _ => self.span().map_or("", |span| &span.name),
        }
    }

    /// Returns `true` if it asks for units, and need not be done for a caller that has gone away.
    /// The others report what has happened already.
    pub const fn is_request(&self) -> bool {
        matches!(self, Self::Increment(_) | Self::Reserve(_))
    }

    /// Returns the answer if its period is not the current one.
    pub fn out_of_period(&self) -> Posted {
        let units = Units::default();
        Posted::unchanged(match self {
            Self::Increment(_) => OperationResult::Increment(IncrementResult {
                outcome: IncrementOutcome::OutOfPeriod,
                units,
            }),
            Self::Reserve(_) | Self::Change(_) => {
                let outcome = ReservationOutcome::OutOfPeriod;
                let result = ReservationResult { outcome, units, reservation: None };
                OperationResult::Reservation(result)
            }
            Self::Refund(_) => {
                let outcome = RefundOutcome::OutOfPeriod;
                OperationResult::Refund(RefundResult { outcome, refunded: 0, units })
            }
        })
    }
}

impl From<Increment> for Operation {
    fn from(increment: Increment) -> Self {
        Self::Increment(increment)
    }
}

impl From<Reserve> for Operation {
    fn from(reserve: Reserve) -> Self {
        Self::Reserve(reserve)
    }
}

impl From<ReservationChange> for Operation {
    fn from(change: ReservationChange) -> Self {
        Self::Change(change)
    }
}

impl From<Refund> for Operation {
    fn from(refund: Refund) -> Self {
        Self::Refund(refund)
    }
}

// === impl Posted ===

impl Posted {
    /// Creates the answer to an operation that changed nothing.
    pub const fn unchanged(result: OperationResult) -> Self {
        Self { result, effect: None, has_event: false }
    }
}

// === impl OperationResult ===

impl OperationResult {
    /// Returns the result of an increment.
    pub const fn increment(&self) -> Option<IncrementResult> {
        match self {
            Self::Increment(result) => Some(*result),
            _ => None,
        }
    }

    /// Returns the result of an operation on a reservation.
    pub fn reservation(self) -> Option<ReservationResult> {
        match self {
            Self::Reservation(result) => Some(result),
            _ => None,
        }
    }

    /// Returns the result of a refund.
    pub const fn refund(&self) -> Option<RefundResult> {
        match self {
            Self::Refund(result) => Some(*result),
            _ => None,
        }
    }
}
