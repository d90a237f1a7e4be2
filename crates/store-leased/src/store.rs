//! The store that leases.

use std::{fmt, time::Duration};

use headgate::{
    Batch, Check, CheckMode, Clock, Extra, Grant, HoldersFuture, Key, Outcome, Outcomes, Store,
    StoreError, StoreFuture, SystemClock, Verb,
};
use smallvec::SmallVec;

use crate::{
    Stats,
    answer::CallTimes,
    fingerprint::{Fingerprint, Fingerprints},
    flight::{Boarding, Flight, Waiting},
    holding::{Holding, Local, Turn, as_micros},
    holdings::Holdings,
    returns::{Returns, give_back},
    stats::{Counters, count},
    taken::Taken,
};

/// Decides from units that the store granted in advance, and asks it for more.
///
/// Put it directly around the shared store, and a [`FailurePolicy`](headgate::FailurePolicy) around
/// it: while the store does not answer, what is held is still handed out, and then the policy
/// decides.
pub struct LeasedStore<S, C = SystemClock> {
    store: S,
    clock: C,
    holdings: Holdings,
    returns: Returns,
    counters: Counters,
}

type Flights<'h> = SmallVec<[Flight<'h>; 1]>;

impl<S: Store> LeasedStore<S> {
    /// Leases from `store`.
    pub fn new(store: S) -> Self {
        Self::with_clock(store, SystemClock::new())
    }
}

impl<S: Store, C: Clock> LeasedStore<S, C> {
    /// Maximum number of subjects of which something is held or known. Beyond it, the store is
    /// asked.
    pub const MAX_SUBJECTS: usize = 65_536;

    /// Longest time for which the denial of a check without an extra is repeated without asking the
    /// store. Another instance may have reset the subject meanwhile.
    pub const DENIAL_HOLD: Duration = Duration::from_millis(60);

    /// Interval at which [`give_back_unused`](Self::give_back_unused) looks for grants.
    const RETURN_EVERY: Duration = Duration::from_millis(5);

    /// Shortest time before the end of a grant at which it is given back, in microseconds: the call
    /// must arrive before the end.
    const RETURN_BEFORE: u64 = 5_000;

    /// Number of calls by others that a request waits for, before it calls by itself.
    const MAX_WAITS: usize = 4;

    /// Leases from `store`, and measures time by the steady time of `clock`.
    pub fn with_clock(store: S, clock: C) -> Self {
        Self {
            store,
            clock,
            holdings: Holdings::new(Self::MAX_SUBJECTS, Fingerprints::random()),
            returns: Returns::default(),
            counters: Counters::default(),
        }
    }

    /// The same store, empty, with room for `subjects`, whose hashes depend on `seed` alone: every
    /// run of a simulation is the same. Whoever knows the seed can choose subjects that displace
    /// each other.
    #[must_use]
    pub fn reproducible(self, subjects: usize, seed: u64) -> Self {
        Self { holdings: Holdings::new(subjects, Fingerprints::seeded(seed)), ..self }
    }

    /// What it has done so far.
    pub fn stats(&self) -> Stats {
        self.counters.read()
    }

    /// Units that are held now.
    pub fn held(&self) -> u64 {
        self.holdings.units(self.clock.steady())
    }

    /// Units of one subject that are held now, and until when by the store's clock.
    pub fn held_of(&self, key: Key<'_>) -> Option<Grant> {
        let now = self.clock.steady();
        self.holdings.with(self.holdings.fingerprint(key), |holding| holding.held(now)).flatten()
    }

    /// Gives back what is not used, shortly before the grant ends. Runs forever: spawn it.
    pub async fn give_back_unused(&self) {
        loop {
            self.returns.scheduled().await;
            tokio::time::sleep(Self::RETURN_EVERY).await;
            self.give_back_due().await;
        }
    }

    /// Gives back what is left of the grants that end soon, and of those under earlier limits.
    pub async fn give_back_due(&self) {
        let now = self.clock.steady();
        let due = self.returns.due(&self.holdings, now);
        give_back(&self.store, due, now, &self.counters).await;
    }

    /// Gives back everything that is held, before the process ends.
    pub async fn give_back_all(&self) {
        let all = self.holdings.remove_all();
        give_back(&self.store, all, self.clock.steady(), &self.counters).await;
    }

    /// Decides from what is held, if that is enough for the whole batch.
    fn decide(&self, batch: &Batch<'_>, turn: Turn) -> Option<Outcomes> {
        let (checks, now) = (batch.checks(), self.clock.steady());
        let mut taken = Taken::none(&self.holdings);
        let mut outcomes = Outcomes::new();
        for check in checks {
            let subject = self.holdings.fingerprint(check.key());
            match self.decide_check(subject, check, turn, now) {
                Local::Admitted(outcome, hand) => {
                    taken.add(subject, check.limit(), hand);
                    outcomes.push(outcome);
                }
                Local::Denied => {
                    let outcomes = self.denial(batch, now)?;
                    count(&self.counters.denied_locally, 1);
                    return Some(outcomes);
                }
                Local::Unknown => return None,
            }
        }
        taken.keep();
        count(&self.counters.admitted_locally, 1);
        Some(outcomes)
    }

    /// What the store said a moment ago about all limits of a batch that one of them denies, if
    /// that is known: nothing is taken for the others.
    fn denial(&self, batch: &Batch<'_>, now: u64) -> Option<Outcomes> {
        let recall = |check: &Check<'_>| {
            // Only required checks take nothing when another one is denied, and are remembered.
            is_leasable(check).then(|| self.holdings.recall(check, now)).flatten()
        };
        let outcomes: Outcomes = batch.checks().iter().map(recall).collect::<Option<_>>()?;
        // The denial may be gone by now: another thread has learned of an admission that the store
        // decided before. Without it, the batch would be admitted without taking anything.
        is_blocked(batch, &outcomes).then_some(outcomes)
    }

    fn decide_check(&self, subject: Fingerprint, check: &Check<'_>, turn: Turn, now: u64) -> Local {
        if !is_leasable(check) {
            return Local::Unknown;
        }
        self.holdings.decide(subject, check, turn, now)
    }

    /// Asks the store, or waits for a call that is under way for one of the subjects.
    async fn ask(&self, batch: &Batch<'_>) -> Result<Outcomes, StoreError> {
        for _ in 0..Self::MAX_WAITS {
            match self.board(batch) {
                Ok((flights, known)) => {
                    let answer = self.call(batch, known).await;
                    // With several subjects, the error may be about another one.
                    if let (Err(error), [_]) = (&answer, batch.checks()) {
                        flights.iter().for_each(|flight| flight.fail(error));
                    }
                    return self.or_held(batch, answer);
                }
                Err(waiting) => {
                    let error = waiting.ended().await;
                    if let Some(outcomes) = self.decide(batch, Turn::Waited) {
                        return Ok(outcomes);
                    }
                    if let Some(error) = error {
                        return Err(error);
                    }
                    if required(batch).all(|check| check.extra().is_none()) {
                        // It was not denied again: nothing is gained by waiting in line.
                        break;
                    }
                }
            }
        }
        let answer = self.call(batch, true).await;
        self.or_held(batch, answer)
    }

    /// The answer of the store. If it does not admit, a request that asked early, and so took
    /// nothing, takes from what is held now.
    fn or_held(
        &self,
        batch: &Batch<'_>,
        answer: Result<Outcomes, StoreError>,
    ) -> Result<Outcomes, StoreError> {
        if answer.as_ref().is_ok_and(|outcomes| !is_blocked(batch, outcomes)) {
            return answer;
        }
        self.decide(batch, Turn::Refused).map_or(answer, Ok)
    }

    /// Leads the calls for the subjects of which something is needed. If there is one under way for
    /// the first of them, it is waited for instead; a request that leads does not wait, so that two
    /// never wait for each other. Also returns whether anything is known of one of the subjects.
    fn board(&self, batch: &Batch<'_>) -> Result<(Flights<'_>, bool), Waiting<'_>> {
        let now = self.clock.steady();
        let mut flights = Flights::new();
        let mut known = false;
        for check in required(batch) {
            let subject = self.holdings.fingerprint(check.key());
            let boarding = self.holdings.board(subject, check, now, flights.is_empty());
            known |= !matches!(boarding, Boarding::Stranger);
            match boarding {
                Boarding::Leads(flight) => flights.push(flight),
                Boarding::Waits(waiting) => return Err(self.expect(waiting, batch)),
                Boarding::Alone | Boarding::Stranger => {}
            }
        }
        Ok((flights, known))
    }

    /// Says how many units of every subject of the batch are needed.
    fn expect<'h>(&self, mut waiting: Waiting<'h>, batch: &Batch<'_>) -> Waiting<'h> {
        for check in required(batch).filter(|check| check.extra().is_some()) {
            waiting.need(self.holdings.fingerprint(check.key()), check.cost().get());
        }
        waiting
    }

    /// Decides what it can from what is held, and asks the store for the rest in one call. Nothing
    /// is held or leased of subjects that are not `known`.
    async fn call(&self, batch: &Batch<'_>, known: bool) -> Result<Outcomes, StoreError> {
        let checks = batch.checks();
        let now = self.clock.steady();
        let mut taken = Taken::none(&self.holdings);
        let mut local: SmallVec<[Option<Outcome>; 2]> = SmallVec::new();
        let mut asked: SmallVec<[Check<'_>; 2]> = SmallVec::new();
        for check in checks {
            if check.extra().is_none() || !known {
                local.push(None);
                asked.push(check.without_extra());
                continue;
            }
            let subject = self.holdings.fingerprint(check.key());
            if let Local::Admitted(outcome, hand) =
                self.decide_check(subject, check, Turn::Calls, now)
            {
                taken.add(subject, check.limit(), hand);
                local.push(Some(outcome));
            } else {
                local.push(None);
                asked.push(self.sized(subject, check, now));
            }
        }
        let Ok(asked) = Batch::new(asked) else {
            // Everything is held by now.
            taken.keep();
            count(&self.counters.admitted_locally, 1);
            return Ok(local.into_iter().flatten().collect());
        };
        let leases = asked.checks().iter().any(|check| check.extra().is_some());
        let verb = if leases { Verb::Lease } else { Verb::Acquire };
        count(&self.counters.calls, 1);
        let sent = self.clock.steady();
        let answer = self.store.apply(verb, &asked).await?;
        self.learn(&asked, &answer, CallTimes { sent, arrived: self.clock.steady() });
        if !is_blocked(&asked, &answer) {
            taken.keep();
        }
        let mut answer = answer.into_iter();
        Ok(local.into_iter().filter_map(|local| local.or_else(|| answer.next())).collect())
    }

    /// The check with the extra that is worth taking now; without one if there is none.
    fn sized<'c>(&self, subject: Fingerprint, check: &Check<'c>, now: u64) -> Check<'c> {
        let Some(extra) = check.extra().filter(|_| is_leasable(check)) else {
            return check.without_extra();
        };
        let worth =
            self.holdings.worth(subject, check, now, as_micros(extra.hold()), extra.units());
        match u32::try_from(worth) {
            Ok(units) if units > 0 => check.with_extra(Extra::new(units, extra.hold())),
            _ => check.without_extra(),
        }
    }

    fn learn(&self, asked: &Batch<'_>, answer: &Outcomes, times: CallTimes) {
        let is_denied = answer.iter().any(|outcome| !outcome.allowed);
        for (check, outcome) in asked.checks().iter().zip(answer.iter()) {
            if outcome.degraded.is_some() || !is_leasable(check) {
                continue;
            }
            let subject = self.holdings.fingerprint(check.key());
            let hold = as_micros(check.extra().map_or(Self::DENIAL_HOLD, Extra::hold));
            let lost = self.holdings.learn(subject, check, outcome, is_denied, times, hold);
            count(&self.counters.lost, lost);
            let Some(grant) = outcome.grant() else { continue };
            count(&self.counters.granted, grant.units);
            let length = grant.until.since(outcome.at);
            let look_after = length.saturating_sub((length / 8).max(Self::RETURN_BEFORE));
            let sent = times.sent;
            let due = [sent + look_after, sent + length];
            self.returns.schedule(due, subject, grant.until, sent);
        }
    }

    /// Forgets the subjects of a batch whose state is deleted or raised.
    fn forget(&self, batch: &Batch<'_>) {
        for check in batch.checks().iter().filter(|check| !check.mode().is_read_only()) {
            let gone = self.holdings.remove(self.holdings.fingerprint(check.key()));
            count(&self.counters.lost, gone.iter().map(|it| it.hand.units).sum());
        }
    }
}

impl<S: Store, C: Clock> Store for LeasedStore<S, C> {
    fn apply<'a>(&'a self, verb: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a> {
        match verb {
            Verb::Acquire => match self.decide(batch, Turn::New) {
                Some(outcomes) => StoreFuture::ready(Ok(outcomes)),
                None => StoreFuture::pending(self.ask(batch)),
            },
            Verb::Reset => StoreFuture::pending(async move {
                let answer = self.store.apply(verb, batch).await;
                // Afterwards: what is granted before the reset is deleted with it.
                self.forget(batch);
                answer
            }),
            Verb::Refund | Verb::Commit(_) | Verb::Cancel(_) => StoreFuture::pending(async move {
                let answer = self.store.apply(verb, batch).await;
                for check in batch.checks().iter().zip(answer.iter().flatten()).filter_map(returned)
                {
                    let subject = self.holdings.fingerprint(check.key());
                    self.holdings.with(subject, Holding::forget_denial);
                }
                answer
            }),
            _ => self.store.apply(verb, batch),
        }
    }

    fn holders<'a>(&'a self, check: Check<'a>, max: usize) -> HoldersFuture<'a> {
        self.store.holders(check, max)
    }

    fn has_breakers(&self) -> bool {
        self.store.has_breakers()
    }
}

impl<S, C> fmt::Debug for LeasedStore<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeasedStore").field("stats", &self.counters.read()).finish_non_exhaustive()
    }
}

/// The checks that are decided from what is held or known, if possible.
fn required<'b, 'c>(batch: &'b Batch<'c>) -> impl Iterator<Item = &'b Check<'c>> {
    batch.checks().iter().filter(|check| is_leasable(check))
}

/// The check, if units may have returned under its limit.
fn returned<'b, 'c>((check, outcome): (&'b Check<'c>, &Outcome)) -> Option<&'b Check<'c>> {
    (outcome.allowed && !check.mode().is_read_only()).then_some(check)
}

/// Returns `true` if one of the checks denies the batch.
fn is_blocked(batch: &Batch<'_>, outcomes: &Outcomes) -> bool {
    let mut answers = batch.checks().iter().zip(outcomes);
    answers.any(|(check, outcome)| !outcome.allowed && check.mode().can_block())
}

/// Returns `true` if units of the check can be taken in advance, and its denial can be repeated. A
/// place of a concurrency limit has a holder, and may be free at any time.
fn is_leasable(check: &Check<'_>) -> bool {
    check.mode() == CheckMode::Required && check.limit().places().is_none()
}

#[cfg(test)]
mod tests;
