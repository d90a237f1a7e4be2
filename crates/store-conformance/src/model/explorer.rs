//! Every schedule of two instances that hold grants of one subject, with few units and few points in
//! time: none of them spends more than the limit.
//!
//! It is a breadth-first search over all states that can be reached. A library for that would bring
//! a web server and a dozen crates more, and take two states for the same if 64 bits of their hashes
//! are equal; this compares the states themselves.

use std::{
    collections::{HashMap, VecDeque},
    hash::{Hash, Hasher},
    rc::Rc,
    time::Duration,
};

use headgate::{Account, Algorithm, Cost, Grant, Limit, State, Timestamp, algorithm::Period};

use super::protocol::{Protocol, Terms};

/// Midnight in UTC, so that a calendar day ends in the middle of the search.
const MIDNIGHT: u64 = 1_772_928_000_000_000;

/// The window of a limit, and the hold, in microseconds.
const WINDOW: u64 = 1_000;

/// Ends of grants are multiples of it.
const STEP: u64 = WINDOW / 2;

/// The bounds of a search.
#[derive(Clone, Copy, Debug)]
struct Scope {
    /// Units of the limit.
    units: u64,
    /// Calls for grants in one schedule.
    calls: u8,
    /// Number of ends of grants, of which the second is midnight.
    ends: u64,
}

/// Few units over one and a half windows, and more units in a shorter time.
const SCOPES: [Scope; 2] =
    [Scope { units: 2, calls: 2, ends: 4 }, Scope { units: 4, calls: 3, ends: 2 }];

impl Scope {
    /// The points in time at which something happens, in order: each end of a grant, and the last
    /// microsecond before it.
    fn times(self) -> Vec<Timestamp> {
        let ends = (0..self.ends).map(|n| MIDNIGHT - STEP + n * STEP);
        ends.flat_map(|end| [end - 1, end].map(Timestamp::from_micros)).collect()
    }
}

/// Units in the hands of an instance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Hand {
    units: u64,
    /// End of the grant by the instance's clock.
    until: Timestamp,
    /// End of the grant by the store's clock.
    granted_until: Timestamp,
}

/// A call for a grant that is under way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Call {
    Sent(Timestamp),
    Answered { sent: Timestamp, at: Timestamp, units: u64, until: Timestamp },
}

/// An instance makes one call at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Instance {
    call: Option<Call>,
    hands: Vec<Hand>,
}

/// Units that are on their way back, and the end of their grant.
type Returning = (u64, Timestamp);

#[derive(Clone, Debug, PartialEq, Eq)]
struct World {
    /// Index of the current time.
    time: usize,
    calls_left: u8,
    duplicates_left: u8,
    /// Requests of killed instances, and second copies: they still arrive, and no one hears the
    /// answer.
    orphans: u8,
    /// In order, because they are interchangeable.
    instances: [Instance; 2],
    returning: Vec<Returning>,
    account: Account,
    /// The state of the algorithm after everything that was really spent.
    truth: State,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Wait,
    /// A request that takes nothing in advance.
    Take,
    Send(usize),
    /// The store decides a call, with this extra.
    Decide(usize, u32),
    /// The same, and the request arrives once more later.
    DecideFirstCopy(usize, u32),
    DecideOrphan(u32),
    Hear(usize),
    LoseAnswer(usize),
    Spend(usize, usize),
    GiveBack(usize, usize),
    /// Units arrive at the store.
    Return(usize),
    Kill(usize),
}

/// More was spent than the limit admits.
struct Excess;

struct Explorer {
    scope: Scope,
    terms: Terms,
    times: Vec<Timestamp>,
}

/// What a search has found.
struct Search {
    states: usize,
    /// The shortest schedule that spends too much.
    excess: Option<Vec<Action>>,
}

impl Explorer {
    fn new(protocol: Protocol, algorithm: Algorithm, scope: Scope) -> Self {
        let hold = Duration::from_micros(WINDOW);
        let limit = match algorithm {
            Algorithm::Calendar => Limit::calendar(scope.units, Period::Day, "UTC"),
            algorithm => Limit::new(algorithm, scope.units, hold),
        };
        let terms = Terms { protocol, limit: limit.unwrap(), hold };
        Self { scope, terms, times: scope.times() }
    }

    /// Visits every state that can be reached, until one spends too much.
    fn search(&self) -> Search {
        let first = Rc::new(World::new(self.scope));
        let mut known = HashMap::from([(Rc::clone(&first), 0)]);
        // The state before each state, and the action between them.
        let mut origins: Vec<Option<(usize, Action)>> = vec![None];
        let mut queue = VecDeque::from([(first, 0)]);
        while let Some((world, number)) = queue.pop_front() {
            for action in self.actions(&world) {
                let Ok(next) = self.after(&world, action) else {
                    origins.push(Some((number, action)));
                    let excess = Some(path(&origins));
                    return Search { states: known.len(), excess };
                };
                if !known.contains_key(&next) {
                    let next = Rc::new(next);
                    known.insert(Rc::clone(&next), origins.len());
                    queue.push_back((next, origins.len()));
                    origins.push(Some((number, action)));
                }
            }
        }
        Search { states: known.len(), excess: None }
    }

    fn actions(&self, world: &World) -> Vec<Action> {
        let mut actions = vec![Action::Take];
        let extras = 1..=2;
        if world.time + 1 < self.times.len() {
            actions.push(Action::Wait);
        }
        if world.orphans > 0 {
            actions.extend(extras.clone().map(Action::DecideOrphan));
        }
        for (i, instance) in world.instances.iter().enumerate() {
            match &instance.call {
                None if world.calls_left > 0 => actions.push(Action::Send(i)),
                None => {}
                Some(Call::Sent(_)) => {
                    actions.extend(extras.clone().map(|extra| Action::Decide(i, extra)));
                    if world.duplicates_left > 0 {
                        let copies = extras.clone().map(|extra| Action::DecideFirstCopy(i, extra));
                        actions.extend(copies);
                    }
                }
                Some(Call::Answered { .. }) => {
                    actions.extend([Action::Hear(i), Action::LoseAnswer(i)]);
                }
            }
            if *instance != Instance::default() {
                actions.push(Action::Kill(i));
            }
            for hand in 0..instance.hands.len() {
                actions.extend([Action::Spend(i, hand), Action::GiveBack(i, hand)]);
            }
        }
        actions.extend((0..world.returning.len()).map(Action::Return));
        actions
    }

    fn after(&self, world: &World, action: Action) -> Result<World, Excess> {
        let mut next = world.clone();
        let now = self.times[world.time];
        match action {
            Action::Wait => next.time += 1,
            Action::Take => {
                if self.terms.take(&mut next.account, 1, now) {
                    self.spend(&mut next, now)?;
                }
            }
            Action::Send(i) => {
                next.calls_left -= 1;
                next.instances[i].call = Some(Call::Sent(now));
            }
            Action::Decide(i, extra) => self.decide(&mut next, i, extra)?,
            Action::DecideFirstCopy(i, extra) => {
                next.duplicates_left -= 1;
                next.orphans += 1;
                self.decide(&mut next, i, extra)?;
            }
            Action::DecideOrphan(extra) => {
                next.orphans -= 1;
                if self.terms.lease(&mut next.account, extra, now).is_some() {
                    self.spend(&mut next, now)?;
                }
            }
            Action::Hear(i) => self.hear(&mut next, i),
            Action::LoseAnswer(i) => next.instances[i].call = None,
            Action::Spend(i, hand) => {
                next.instances[i].hands[hand].units -= 1;
                self.spend(&mut next, now)?;
            }
            Action::GiveBack(i, hand) => {
                let hand = next.instances[i].hands.remove(hand);
                next.returning.push((hand.units, hand.granted_until));
            }
            Action::Return(which) => {
                let (units, until) = next.returning.remove(which);
                self.terms.give_back(&mut next.account, units, until, now);
            }
            Action::Kill(i) => {
                let killed = std::mem::take(&mut next.instances[i]);
                next.orphans += u8::from(matches!(killed.call, Some(Call::Sent(_))));
            }
        }
        next.tidy(self.times[next.time]);
        Ok(next)
    }

    fn decide(&self, world: &mut World, i: usize, extra: u32) -> Result<(), Excess> {
        let now = self.times[world.time];
        let Some(Call::Sent(sent)) = world.instances[i].call.take() else { return Ok(()) };
        let Some(admission) = self.terms.lease(&mut world.account, extra, now) else {
            return Ok(());
        };
        let answer = |Grant { units, until }| Call::Answered { sent, at: now, units, until };
        world.instances[i].call = admission.grant.map(answer);
        self.spend(world, now)
    }

    fn hear(&self, world: &mut World, i: usize) {
        let now = self.times[world.time];
        if let Some(Call::Answered { sent, at, units, until }) = world.instances[i].call.take() {
            let grant = Grant { units, until };
            let end = self.terms.end_for_holder(grant, [sent, at, now]);
            world.instances[i].hands.push(Hand { units, until: end, granted_until: until });
        }
    }

    fn spend(&self, world: &mut World, now: Timestamp) -> Result<(), Excess> {
        let admits = self.terms.limit.admit(&mut world.truth, Cost::ONE, now);
        if admits { Ok(()) } else { Err(Excess) }
    }
}

impl World {
    fn new(scope: Scope) -> Self {
        Self {
            time: 0,
            calls_left: scope.calls,
            // One request arrives twice.
            duplicates_left: 1,
            orphans: 0,
            instances: Default::default(),
            returning: Vec::new(),
            account: Account::default(),
            truth: State::default(),
        }
    }

    /// Gives equal states the same form.
    fn tidy(&mut self, now: Timestamp) {
        for instance in &mut self.instances {
            instance.hands.retain(|hand| hand.until > now && hand.units > 0);
            instance.hands.sort();
        }
        self.instances.sort();
        self.returning.sort_unstable();
    }
}

impl Hash for World {
    /// Leaves out the states of the algorithm, which have no hash: most are told apart by the rest.
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (self.time, self.calls_left, self.duplicates_left, self.orphans).hash(hasher);
        (&self.instances, &self.returning).hash(hasher);
        for grant in &self.account.grants {
            (grant.units, grant.until).hash(hasher);
        }
        for state in [&self.account.state, &self.truth] {
            hash_state(state, hasher);
        }
    }
}

fn hash_state<H: Hasher>(state: &State, hasher: &mut H) {
    match state {
        State::Fresh => {}
        State::Bucket(bucket) => bucket.full_at.hash(hasher),
        State::Window(window) => format!("{window:?}").hash(hasher),
        State::Counter(counter) => format!("{counter:?}").hash(hasher),
        State::Log(log) => format!("{log:?}").hash(hasher),
        State::Places(places) => format!("{places:?}").hash(hasher),
    }
}

/// The actions that lead to the last state.
fn path(origins: &[Option<(usize, Action)>]) -> Vec<Action> {
    let mut path = Vec::new();
    let mut origin = origins.last().copied().flatten();
    while let Some((before, action)) = origin {
        path.push(action);
        origin = origins[before];
    }
    path.reverse();
    path
}

#[test]
fn no_schedule_of_two_instances_spends_more_than_the_limit() {
    for algorithm in Algorithm::RATES {
        for scope in SCOPES {
            let search = Explorer::new(Protocol::Sound, algorithm, scope).search();
            assert!(search.excess.is_none(), "{algorithm}: {:?}", search.excess);
            assert!(search.states > 1_000, "{algorithm}: only {} states", search.states);
        }
    }
}

#[test]
fn exploring_finds_every_mistake() {
    for mistake in Protocol::MISTAKES {
        let excess = |(algorithm, scope)| Explorer::new(mistake, algorithm, scope).search().excess;
        let mut all = Algorithm::RATES.iter().flat_map(|it| SCOPES.map(|scope| (*it, scope)));
        let found = all.find_map(excess);
        assert!(found.is_some(), "{mistake:?}");
    }
}
