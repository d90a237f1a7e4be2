//! Decisions on operations, between a ledger's reads and writes.

mod balance;
mod reservations;

use std::collections::HashMap;

use headgate::Timestamp;

pub use self::balance::{Balance, Terms};
use self::reservations::Reservations;
use super::{
    Effect, Increment, IncrementOutcome, IncrementResult, Operation, OperationResult, Posted,
    Refund, RefundOutcome, RefundResult, ReservationChange, ReservationOutcome, ReservationResult,
    Reserve,
};
use crate::{QuotaEvent, QuotaId, Reservation, Units};

/// The part of the ledger that a batch of operations needs. A ledger fills it under row locks, lets
/// it decide, and writes the changes. It does no I/O.
#[derive(Debug, Default)]
pub struct Book {
    balances: HashMap<Account, Balance>,
    charges: HashMap<(Account, String), Charge>,
    reservations: Reservations,
    events: Vec<QuotaEvent>,
}

/// A policy in one period.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Account {
    /// The policy.
    pub policy: QuotaId,
    /// Name of the period.
    pub period_name: String,
}

/// The charge of a request id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    /// Units.
    pub amount: u64,
    /// Units of the period after it, with the limit by which it was decided.
    pub units: Units,
    /// Number of resets before it.
    pub resets: u64,
    /// Units that a refund gave back; `None` if there was none.
    pub refunded: Option<u64>,
    /// Write that it needs.
    pub write: ChargeWrite,
}

/// The write that a charge needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChargeWrite {
    /// None.
    Unchanged,
    /// It must be inserted.
    Insert,
    /// Its refund must be updated.
    Update,
}

/// The events of a batch, and the time of the operation that may add one.
struct Recorder<'a> {
    events: &'a mut Vec<QuotaEvent>,
    at: Timestamp,
}

// === impl Book ===

impl Book {
    /// Adds the state of a policy, as read from the database.
    pub fn add_balance(&mut self, account: Account, balance: Balance) {
        self.balances.insert(account, balance);
    }

    /// Adds the charge of a request id, as read from the database.
    pub fn add_charge(&mut self, account: Account, request_id: String, charge: Charge) {
        self.charges.insert((account, request_id), charge);
    }

    /// Adds a reservation, as read from the database after those whose TTL is over were expired.
    pub fn add_reservation(&mut self, account: Account, reservation: Reservation) {
        self.reservations.add(account, reservation);
    }

    /// Decides the next operation, at `now` by the ledger's clock.
    pub fn decide(&mut self, operation: &Operation, now: Timestamp) -> Posted {
        let account = Account::of(operation);
        let Some(balance) = self.balances.get_mut(&account) else {
            return Posted::unchanged(not_found(operation, Units::default()));
        };
        let Some(terms) = balance.terms.clone() else {
            return Posted::unchanged(not_found(operation, balance.units()));
        };
        let before = Units {
            reserved: balance.reserved + std::mem::take(&mut balance.expired),
            ..balance.units()
        };
        let earlier_events = self.events.len();
        let mut step = Step {
            account: &account,
            terms: &terms,
            balance,
            recorder: Recorder { events: &mut self.events, at: operation.at() },
            now,
        };
        let result = match operation {
            Operation::Increment(increment) => {
                OperationResult::Increment(step.increment(increment, &mut self.charges))
            }
            Operation::Reserve(reserve) => {
                OperationResult::Reservation(step.reserve(reserve, &mut self.reservations))
            }
            Operation::Change(change) => {
                OperationResult::Reservation(step.change(change, &mut self.reservations))
            }
            Operation::Refund(refund) => {
                OperationResult::Refund(step.refund(refund, &mut self.charges))
            }
        };
        let effect = step.balance.effect_since(before, result.is_denied());
        Posted { result, effect, has_event: self.events.len() > earlier_events }
    }

    /// Returns all accounts.
    pub fn accounts(&self) -> impl Iterator<Item = &Account> {
        self.balances.keys()
    }

    /// Returns the state of an account.
    pub fn balance_mut(&mut self, account: &Account) -> Option<&mut Balance> {
        self.balances.get_mut(account)
    }

    /// Returns the accounts of existing policies with reserved units.
    pub fn reserving(&self) -> impl Iterator<Item = &Account> {
        let reserving = |balance: &Balance| balance.reserved > 0 && balance.terms.is_some();
        self.balances.iter().filter(move |(_, balance)| reserving(balance)).map(|(key, _)| key)
    }

    /// Returns the balances that must be written.
    pub fn changed(&self) -> impl Iterator<Item = (&Account, &Balance)> {
        self.balances.iter().filter(|(_, balance)| balance.changed)
    }

    /// Returns the charges that need this write.
    pub fn charges(&self, write: ChargeWrite) -> impl Iterator<Item = (&Account, &str, &Charge)> {
        let all = self.charges.iter().filter(move |(_, charge)| charge.write == write);
        all.map(|((account, id), charge)| (account, &**id, charge))
    }

    /// Returns the reservations that must be written.
    pub fn changed_reservations(&self) -> impl Iterator<Item = (&Account, &Reservation)> {
        self.reservations.changed()
    }

    /// Returns the events that must be written, in order.
    pub fn events(&self) -> &[QuotaEvent] {
        &self.events
    }
}

/// Returns the result of an operation on a policy that does not exist.
const fn not_found(operation: &Operation, units: Units) -> OperationResult {
    match operation {
        Operation::Increment(_) => OperationResult::Increment(IncrementResult {
            outcome: IncrementOutcome::NotFound,
            units,
        }),
        Operation::Reserve(_) | Operation::Change(_) => {
            OperationResult::Reservation(ReservationResult {
                outcome: ReservationOutcome::NotFound,
                units,
                reservation: None,
            })
        }
        Operation::Refund(_) => OperationResult::Refund(RefundResult {
            outcome: RefundOutcome::NotFound,
            refunded: 0,
            units,
        }),
    }
}

/// One operation in progress.
struct Step<'a> {
    account: &'a Account,
    terms: &'a Terms,
    balance: &'a mut Balance,
    recorder: Recorder<'a>,
    now: Timestamp,
}

// === impl Step ===

impl Step<'_> {
    fn increment(
        &mut self,
        increment: &Increment,
        charges: &mut HashMap<(Account, String), Charge>,
    ) -> IncrementResult {
        let (amount, limit) = (increment.amount, self.terms.limit);
        let key = increment.request_id.clone().map(|id| (self.account.clone(), id));
        // A charge is replayed even if the policy has changed since.
        match key.as_ref().and_then(|key| charges.get(key)) {
            Some(charge) if charge.amount != amount => {
                return self.incremented(IncrementOutcome::Conflict);
            }
            Some(charge) if charge.refunded.is_some() => {
                return self.incremented(IncrementOutcome::Refunded);
            }
            Some(charge) => {
                return IncrementResult {
                    outcome: IncrementOutcome::Replayed,
                    units: charge.units,
                };
            }
            None => {}
        }
        if !self.terms.enabled {
            return self.incremented(IncrementOutcome::Disabled);
        }
        if amount > limit {
            return self.incremented(IncrementOutcome::ExceedsLimit);
        }
        let admitted = self.balance.charge(amount, limit);
        if let Some(key) = key
            && admitted
        {
            let (units, resets) = (self.balance.units(), self.balance.resets);
            let write = ChargeWrite::Insert;
            charges.insert(key, Charge { amount, units, resets, refunded: None, write });
        }
        self.balance.record_events(self.account, admitted, !admitted, &mut self.recorder);
        let outcome = if admitted { IncrementOutcome::Charged } else { IncrementOutcome::Denied };
        self.incremented(outcome)
    }

    fn incremented(&self, outcome: IncrementOutcome) -> IncrementResult {
        IncrementResult { outcome, units: self.balance.units() }
    }

    /// Gives back a charge once. A reset has given back what was charged before it.
    fn refund(
        &mut self,
        refund: &Refund,
        charges: &mut HashMap<(Account, String), Charge>,
    ) -> RefundResult {
        let key = (self.account.clone(), refund.request_id.clone());
        let (outcome, refunded) = match charges.get_mut(&key) {
            None => (RefundOutcome::Unknown, 0),
            Some(Charge { refunded: Some(refunded), .. }) => (RefundOutcome::Replayed, *refunded),
            Some(charge) => {
                let is_reset = charge.resets != self.balance.resets;
                let back = if is_reset { 0 } else { self.balance.refund(charge.amount) };
                charge.refunded = Some(back);
                if charge.write == ChargeWrite::Unchanged {
                    charge.write = ChargeWrite::Update;
                }
                (RefundOutcome::Refunded, back)
            }
        };
        RefundResult { outcome, refunded, units: self.balance.units() }
    }
}

// === impl OperationResult ===

impl OperationResult {
    /// Returns `true` if too few units were left.
    const fn is_denied(&self) -> bool {
        match self {
            Self::Increment(result) => matches!(result.outcome, IncrementOutcome::Denied),
            Self::Reservation(result) => matches!(result.outcome, ReservationOutcome::Denied),
            Self::Refund(_) => false,
        }
    }
}

// === impl Balance ===

impl Balance {
    /// Compares with the units before; `None` if nothing changed and nothing was denied.
    fn effect_since(&self, before: Units, denied: bool) -> Option<Effect> {
        let units = self.units();
        let changed = (units.used, units.reserved) != (before.used, before.reserved);
        (changed || denied).then(|| Effect {
            units,
            added: units.taken().saturating_sub(before.taken()),
            lowered: units.taken() < before.taken(),
            refunded: units.used < before.used,
            exceeded: self.exceeded_recorded,
        })
    }
}

// === impl Account ===

impl Account {
    /// Returns the account of an operation.
    pub fn of(operation: &Operation) -> Self {
        let period_name = operation.period_name().to_owned();
        Self { policy: operation.policy().clone(), period_name }
    }
}

#[cfg(test)]
mod tests;
