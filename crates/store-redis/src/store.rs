//! One call where keys share a node, reserve and confirm where they do not.

use std::{fmt, time::Duration};

use futures_util::future::join_all;
use headgate::{
    Batch, Check, Clock, LeaseId, Outcomes, Stake, Store, StoreError, StoreFuture, SystemClock,
    Verb,
};
use redis::cluster_routing::Slot;

use crate::{
    RedisConfig,
    call::{self, Call},
    config::Topology,
    link::Link,
};

/// Keeps subjects' states in Redis or Valkey.
pub struct RedisStore {
    link: Link,
    /// Only chooses the calendar periods that Redis is told of.
    clock: Box<dyn Clock>,
    is_cluster: bool,
}

/// Checks that can be decided in one call, with their places in the batch.
struct Group<'a> {
    slot: Slot,
    places: Vec<usize>,
    checks: Vec<Check<'a>>,
}

impl RedisStore {
    /// How long a part of a batch waits for the other nodes' parts.
    const LEASE: Duration = Duration::from_secs(5);

    /// Connects in the background, and again whenever the connection is lost:
    /// calls fail until Redis is there.
    ///
    /// # Panics
    ///
    /// Outside a Tokio runtime.
    #[expect(clippy::needless_pass_by_value, reason = "a store takes its configuration over")]
    pub fn connect(config: RedisConfig) -> Self {
        // TLS needs a choice of cryptography; a program that made its own keeps it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self {
            is_cluster: matches!(config.topology, Topology::Cluster(_)),
            link: Link::open(&config),
            clock: Box::new(SystemClock::new()),
        }
    }

    /// With another clock than the machine's. It decides nothing: a wrong one
    /// only costs a second round trip on calendar windows.
    #[must_use]
    pub fn with_clock(self, clock: impl Clock + 'static) -> Self {
        Self { clock: Box::new(clock), ..self }
    }

    async fn apply_to_batch(&self, verb: Verb, batch: &Batch<'_>) -> Result<Outcomes, StoreError> {
        if !self.is_cluster || batch.checks().len() == 1 {
            return self.apply_at_once(verb, batch.checks()).await;
        }
        let groups = Group::by_slot(batch.checks());
        match verb {
            _ if groups.len() == 1 => self.apply_at_once(verb, batch.checks()).await,
            // Nobody waits for anybody: there is nothing to reserve.
            Verb::Acquire if !batch.checks().iter().any(|check| check.stake().is_bound()) => {
                let answers = self.apply_to_each(Verb::Acquire, &groups).await;
                Ok(Group::join(&groups, answers.into_iter().collect::<Result<_, _>>()?))
            }
            Verb::Acquire => {
                let (id, lease) = (LeaseId::random(), Self::LEASE);
                let mut answers = self.reserve_each(&groups, id, lease).await?;
                if Group::agree(&groups, &answers) {
                    // What is taken stays taken: a node lost here forgets or remembers by itself.
                    self.settle(Verb::Commit(id), &groups, &mut answers, |_| true).await;
                }
                Ok(Group::join(&groups, answers))
            }
            Verb::Reserve { id, lease } => {
                Ok(Group::join(&groups, self.reserve_each(&groups, id, lease).await?))
            }
            verb => {
                let answers = self.apply_to_each(verb, &groups).await;
                Ok(Group::join(&groups, answers.into_iter().collect::<Result<_, _>>()?))
            }
        }
    }

    /// Reserves on every node; where one denies, gives back what the others took.
    async fn reserve_each(
        &self,
        groups: &[Group<'_>],
        id: LeaseId,
        lease: Duration,
    ) -> Result<Vec<Outcomes>, StoreError> {
        let answers = self.apply_to_each(Verb::Reserve { id, lease }, groups).await;
        let failure = answers.iter().find_map(|answer| answer.as_ref().err().cloned());
        // A node that did not answer has nothing that could be settled with it.
        let mut answers: Vec<Outcomes> =
            answers.into_iter().map(Result::unwrap_or_default).collect();
        if failure.is_some() || !Group::agree(groups, &answers) {
            // A node that cannot cancel gives back when the lease runs out.
            self.settle(Verb::Cancel(id), groups, &mut answers, Stake::is_bound).await;
            self.settle(Verb::Commit(id), groups, &mut answers, |stake| !stake.is_bound()).await;
        }
        failure.map_or(Ok(answers), Err)
    }

    /// Commits or cancels what those of such stakes reserved, and puts the answers in place of the reservations'.
    async fn settle(
        &self,
        verb: Verb,
        groups: &[Group<'_>],
        answers: &mut [Outcomes],
        of: impl Fn(Stake) -> bool,
    ) {
        let taken = groups.iter().zip(&*answers).map(|(group, answer)| group.taken(answer, &of));
        let taken: Vec<Group<'_>> = taken.collect();
        let settled = taken.iter().map(|group| async {
            if group.checks.is_empty() {
                return Ok(Outcomes::new());
            }
            self.apply_at_once(verb, &group.checks).await
        });
        for ((group, answer), settled) in taken.iter().zip(answers).zip(join_all(settled).await) {
            let settled = settled.ok().filter(|all| all.iter().all(|outcome| outcome.allowed));
            for (place, outcome) in group.places.iter().zip(settled.unwrap_or_default()) {
                answer[*place] = outcome;
            }
        }
    }

    async fn apply_to_each(
        &self,
        verb: Verb,
        groups: &[Group<'_>],
    ) -> Vec<Result<Outcomes, StoreError>> {
        join_all(groups.iter().map(|group| self.apply_at_once(verb, &group.checks))).await
    }

    /// One script call.
    async fn apply_at_once(
        &self,
        verb: Verb,
        checks: &[Check<'_>],
    ) -> Result<Outcomes, StoreError> {
        let mut answer = self.link.run(&Call::new(verb, checks, self.clock.now())).await?;
        if let Some(now) = call::other_periods_wanted(&answer) {
            answer = self.link.run(&Call::new(verb, checks, now)).await?;
        }
        call::outcomes(checks, &answer).map_err(|error| StoreError::Corrupt(error.to_string()))
    }
}

impl Store for RedisStore {
    fn apply<'a>(&'a self, verb: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a> {
        StoreFuture::pending(self.apply_to_batch(verb, batch))
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("link", &self.link).finish_non_exhaustive()
    }
}

// === impl Group ===

impl<'a> Group<'a> {
    fn by_slot(checks: &[Check<'a>]) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for (place, check) in checks.iter().enumerate() {
            let slot = Slot::for_key(check.key().to_string());
            let known = groups.iter().position(|group| group.slot == slot);
            let i = known.unwrap_or_else(|| {
                groups.push(Self { slot, places: Vec::new(), checks: Vec::new() });
                groups.len() - 1
            });
            groups[i].places.push(place);
            groups[i].checks.push(*check);
        }
        groups
    }

    /// Whether everything that binds has room, everywhere.
    fn agree(groups: &[Self], answers: &[Outcomes]) -> bool {
        groups.iter().zip(answers).all(|(group, answer)| group.binding_have_room(answer))
    }

    fn binding_have_room(&self, answer: &Outcomes) -> bool {
        self.checks.len() == answer.len()
            && self
                .checks
                .iter()
                .zip(answer)
                .all(|(check, outcome)| outcome.allowed || !check.stake().binds())
    }

    /// Those of such stakes that a reservation with this answer took from, with their places in this group.
    fn taken(&self, answer: &Outcomes, of: impl Fn(Stake) -> bool) -> Self {
        let all = self.binding_have_room(answer);
        let taken = self.checks.iter().zip(answer).enumerate();
        let taken = taken.filter(|(_, (check, outcome))| {
            of(check.stake()) && check.stake().takes(outcome.allowed, all)
        });
        let (places, checks) =
            taken.map(|(place, (check, _))| (place, check.with_stake(Stake::Shared))).unzip();
        Self { slot: self.slot, places, checks }
    }

    /// Puts the groups' answers back into the batch's order.
    fn join(groups: &[Self], answers: Vec<Outcomes>) -> Outcomes {
        let places = groups.iter().flat_map(|group| &group.places);
        let mut sorted: Vec<_> = places.zip(answers.into_iter().flatten()).collect();
        sorted.sort_unstable_by_key(|(place, _)| **place);
        sorted.into_iter().map(|(_, outcome)| outcome).collect()
    }
}
