//! Using, settling, cancelling and reading reservations.

use headgate::{
    Batch, Check, CheckMode, Cost, Decision, FailMode, Key, KeySpace, Outcome, Outcomes,
    Settlement, Spent, Standing, Timestamp, Verb,
};

use super::{Charge, CheckRateLimit, Costs, ReservationError};
use crate::{
    ReservationId,
    reservation::{InForce, ReservedLimit},
};

/// The result of settling one check of a reservation. Of several limits it is that of the strictest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckSettlement {
    /// Units that were charged.
    pub settled: u64,
    /// Units that were reserved, and returned.
    pub returned: u64,
    /// Units that were spent and not available, and were not charged.
    pub owed: u64,
    /// Units that the subject has now taken beyond its limit.
    pub debt: u64,
    /// The limit with the fewest units left; `None` if no rule limits the check.
    pub decision: Option<Decision>,
}

/// A reservation that was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservationUse {
    /// Units that may be spent before the next use; `None` if no rule limits them.
    pub held: Option<u64>,
    /// Time at which it expires, by the store's clock.
    pub expires_at: Timestamp,
}

/// The state of a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationState {
    /// Whether it is pending, settled or ended.
    pub status: Status,
    /// Time at which it expires, if it is pending.
    pub expires_at: Option<Timestamp>,
    /// The state of each check.
    pub checks: Vec<CheckStanding>,
}

/// The state of one check of a reservation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckStanding {
    /// Units that it holds.
    pub held: u64,
    /// Units for which it was settled, less those it owes.
    pub settled: u64,
    /// Units that returned when it was settled.
    pub returned: u64,
    /// Units that it owes.
    pub owed: u64,
}

/// Whether a reservation is pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It holds its units.
    Pending,
    /// It was settled.
    Settled,
    /// It has expired or was cancelled, or its settlement is forgotten.
    Ended,
}

impl Status {
    /// Returns the name in APIs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Settled => "settled",
            Self::Ended => "ended",
        }
    }
}

impl CheckRateLimit {
    /// Charges what was spent, and renews the reservation, which then holds as many units as were
    /// charged again if they are available.
    pub async fn use_reservation(
        &self,
        id: &ReservationId,
        charge: &Charge,
    ) -> Result<ReservationUse, ReservationError> {
        charge.fit(id)?;
        let verb = Verb::Use { id: id.lease(), lease: id.ttl() };
        let spent = |limit: &ReservedLimit| charge.under(limit, id);
        let outcomes = self.change(id, verb, Some(&spent)).await?;
        let pending = id.limits().iter().zip(super::pending(&outcomes));
        // A place is held, not spent.
        let charged =
            |limit: &ReservedLimit| !limit.holds_places() && charge.costs().under(limit, id) > 0;
        let held = pending.clone().filter(|(limit, _)| charged(limit)).filter_map(|(_, it)| it);
        let held = held.map(|(held, _)| held).min();
        let counted = pending.clone().filter(|(limit, _)| !limit.holds_places());
        let counted = counted.filter_map(|(_, it)| it);
        let all = pending.filter_map(|(_, it)| it);
        let expires_at = all.map(|(_, expires_at)| expires_at).min();
        Ok(ReservationUse {
            held: held.or_else(|| counted.map(|(held, _)| held).min()),
            expires_at: expires_at.unwrap_or_else(|| self.catalog.now() + id.ttl()),
        })
    }

    /// Ends a reservation for what was spent in all, with what was used while it ran: gives the
    /// rest back, or takes what is missing; with `overdraft` even past the limit.
    pub async fn settle_reservation(
        &self,
        id: &ReservationId,
        costs: &Costs,
        overdraft: bool,
    ) -> Result<Vec<CheckSettlement>, ReservationError> {
        costs.fit(id, "cost")?;
        let spent = |limit: &ReservedLimit| match costs.under(limit, id) {
            units if overdraft => Spent::with_overdraft(units),
            units => Spent::within_the_limit(units),
        };
        let outcomes = self.change(id, Verb::Commit(id.lease()), Some(&spent)).await?;
        Ok((0..id.checks()).map(|check| CheckSettlement::of(id, check, &outcomes)).collect())
    }

    /// Ends a reservation; the units that were not used return.
    pub async fn cancel_reservation(&self, id: &ReservationId) -> Result<(), ReservationError> {
        self.change(id, Verb::Cancel(id.lease()), None).await.map(drop)
    }

    /// Returns the state of a reservation.
    pub async fn reservation(
        &self,
        id: &ReservationId,
    ) -> Result<ReservationState, ReservationError> {
        // A check that only reports changes nothing, whatever the verb is.
        let verb = Verb::Cancel(id.lease());
        let outcomes = self.apply_to_reservation(id, verb, None, CheckMode::Report).await?;
        let expires_at =
            super::pending(&outcomes).into_iter().flatten().map(|(_, expires_at)| expires_at).min();
        let is_settled = |outcome: &Outcome| settled_for(outcome).is_some();
        let status = match expires_at {
            Some(_) => Status::Pending,
            None if outcomes.iter().any(is_settled) => Status::Settled,
            None => Status::Ended,
        };
        let checks = (0..id.checks()).map(|check| CheckStanding::of(id, check, &outcomes));
        Ok(ReservationState { status, expires_at, checks: checks.collect() })
    }

    /// Applies `verb`, which all limits must allow.
    pub(in super::super) async fn change(
        &self,
        id: &ReservationId,
        verb: Verb,
        spent: Option<&(dyn Fn(&ReservedLimit) -> Spent + Sync)>,
    ) -> Result<Outcomes, ReservationError> {
        let outcomes = self.apply_to_reservation(id, verb, spent, CheckMode::Required).await?;
        match outcomes.iter().find(|outcome| !outcome.allowed) {
            None => Ok(outcomes),
            Some(Outcome { degraded: Some(by), .. }) if let Some(mode) = by.fail_mode() => {
                Err(ReservationError::DeniedBy(mode))
            }
            Some(denied) => {
                Err(settled_for(denied)
                    .map_or(ReservationError::Ended, ReservationError::SettledFor))
            }
        }
    }

    async fn apply_to_reservation(
        &self,
        id: &ReservationId,
        verb: Verb,
        spent: Option<&(dyn Fn(&ReservedLimit) -> Spent + Sync)>,
        mode: CheckMode,
    ) -> Result<Outcomes, ReservationError> {
        if id.limits().is_empty() {
            return Ok(Outcomes::new());
        }
        let snapshot = self.catalog.load();
        let spaces: Vec<KeySpace<'_>> = id.limits().iter().map(ReservedLimit::space).collect();
        let checks = id.limits().iter().zip(&spaces).map(|(reserved, space)| {
            // The key was valid when it was reserved, and every limit admits one unit.
            let key = Key::new(reserved.subject()).ok()?.within(space);
            let InForce { limit, fail_mode, by_rule } =
                reserved.in_force(&snapshot, || self.catalog.now());
            // Without the store, a place is renewed as it would be taken. What an id says that no
            // rule confirms must not take one.
            let takes = matches!(verb, Verb::Use { .. }) && reserved.holds_places();
            let fail_mode = if takes && !by_rule { FailMode::Closed } else { fail_mode };
            let check = Check::new(key, limit, Cost::ONE).ok()?;
            let check = check.with_fail_mode(fail_mode).with_mode(mode);
            Some(spent.map_or(check, |spent| check.spent(spent(reserved))))
        });
        let batch = checks.collect::<Option<Vec<_>>>().and_then(|checks| Batch::new(checks).ok());
        let batch = batch.ok_or(ReservationError::Ended)?;
        Ok(self.limiter.apply(verb, &batch).await?)
    }
}

impl CheckSettlement {
    /// Returns the one that owes most; the first one of equals.
    pub fn most_owing(checks: &[Self]) -> Option<&Self> {
        checks.iter().reduce(|most, check| if check.owed > most.owed { check } else { most })
    }

    /// Folds the limits of a check.
    fn of(id: &ReservationId, check: usize, outcomes: &[Outcome]) -> Self {
        let own: Vec<Outcome> = own(id, check, outcomes).copied().collect();
        if own.is_empty() {
            return Self { settled: 0, returned: 0, owed: 0, debt: 0, decision: None };
        }
        let all = || own.iter().map(Settlement::of);
        Self {
            settled: all().map(|it| it.settled).min().unwrap_or_default(),
            returned: all().map(|it| it.returned).min().unwrap_or_default(),
            owed: all().map(|it| it.owed).max().unwrap_or_default(),
            debt: all().map(|it| it.debt).max().unwrap_or_default(),
            decision: Some(Decision::fold(&own)),
        }
    }
}

impl CheckStanding {
    /// Folds the limits of a check.
    fn of(id: &ReservationId, check: usize, outcomes: &[Outcome]) -> Self {
        let all = || own(id, check, outcomes).map(Self::of_limit);
        Self {
            held: all().map(|it| it.held).min().unwrap_or_default(),
            settled: all().map(|it| it.settled).min().unwrap_or_default(),
            returned: all().map(|it| it.returned).min().unwrap_or_default(),
            owed: all().map(|it| it.owed).max().unwrap_or_default(),
        }
    }

    fn of_limit(outcome: &Outcome) -> Self {
        let Settlement { settled, returned, owed, .. } = Settlement::of(outcome);
        let held = match outcome.reservation() {
            Some(Standing::Pending { held, .. }) => held,
            _ => 0,
        };
        Self { held, settled, returned, owed }
    }
}

/// The outcomes of the limits of a check that count units.
fn own<'a>(
    id: &'a ReservationId,
    check: usize,
    outcomes: &'a [Outcome],
) -> impl Iterator<Item = &'a Outcome> {
    let limits = id.limits().iter().zip(outcomes);
    let is_own = move |limit: &ReservedLimit| limit.counts(check) && !limit.holds_places();
    limits.filter(move |(limit, _)| is_own(limit)).map(|(_, outcome)| outcome)
}

/// The cost for which the reservation was settled, if it was.
pub(super) const fn settled_for(outcome: &Outcome) -> Option<u64> {
    match outcome.reservation() {
        Some(
            Standing::Settled { spent, .. }
            | Standing::Owing { spent, .. }
            | Standing::InDebt { spent, .. },
        ) => Some(spent),
        _ => None,
    }
}
