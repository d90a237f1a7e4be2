//! Random traffic: subjects, their limits, and timed operations on them.

use std::{collections::HashMap, time::Duration};

use headgate::{
    Algorithm, Check, CheckMode, Cost, Extra, Grant, Key, KeySpace, LeaseId, Limit, Outcome, Place,
    Spent, Timestamp, Verb, algorithm::Period,
};
use proptest::{prelude::*, sample::select};

/// Operations on a few subjects.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) subjects: Vec<Subject>,
    pub(crate) steps: Vec<Step>,
}

/// An algorithm with limits that change over time.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// The same algorithm and window with different numbers.
    pub(crate) limits: Vec<Limit>,
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// Microseconds since the step before.
    pub(crate) pause: u64,
    pub(crate) verb: Verb,
    /// Which subjects take part, with which of their limits, at which share of its capacity.
    pub(crate) parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    subject: usize,
    limit: usize,
    cost: CostPick,
    mode: CheckMode,
    extra: Extra,
    spent: Option<SpentPick>,
    /// Whether a refund says when the units were taken.
    timed: bool,
    /// The lease under which an acquisition takes places.
    place: Option<Place>,
}

/// What a reservation cost in the end.
#[derive(Clone, Copy, Debug)]
struct SpentPick {
    cost: CostPick,
    /// As a multiple of `cost`.
    times: u64,
    spending: Spending,
}

#[derive(Clone, Copy, Debug)]
enum Spending {
    Within,
    Overdraft,
    Total,
}

#[derive(Clone, Copy, Debug)]
enum CostPick {
    One,
    Some(u64),
    All,
}

const SUBJECTS: usize = 3;

impl Scenario {
    /// Traffic over windows of any length, for stores whose clock can be set.
    pub(crate) fn any() -> impl Strategy<Value = Self> {
        let windows = select(vec![
            Duration::from_millis(1),
            Duration::from_micros(999_983),
            Duration::from_secs(1),
            Duration::from_secs(60),
            Duration::from_hours(24),
            Limit::MAX_WINDOW,
        ]);
        Self::over(windows.boxed(), any_pause().boxed())
    }

    /// Traffic over windows short enough to see them pass, for stores on their own time.
    pub(crate) fn quick() -> impl Strategy<Value = Self> {
        let windows = select(vec![2, 10, 50]).prop_map(Duration::from_millis);
        Self::over(windows.boxed(), Just(0).boxed())
    }

    /// The same traffic without what independent nodes cannot agree on: units of a denied batch are
    /// returned a moment later, under the limit of that moment, and reservations end node by node.
    pub(crate) fn over_several_places(mut self) -> Self {
        let mut names = HashMap::new();
        for (i, step) in self.steps.iter_mut().enumerate() {
            match &mut step.verb {
                Verb::Reserve { id, .. } => {
                    let own = LeaseId::from(100 + i as u64);
                    names.insert(*id, own);
                    *id = own;
                }
                Verb::Use { id, .. } | Verb::Commit(id) | Verb::Cancel(id) => {
                    *id = names.get(id).copied().unwrap_or(*id);
                    step.parts.truncate(1);
                }
                Verb::Peek
                | Verb::Acquire
                | Verb::Lease
                | Verb::Refund
                | Verb::GiveBack
                | Verb::Reset => {}
            }
            // Undoing an acquisition also releases what an earlier one with the same id took.
            for place in step.parts.iter_mut().filter_map(|part| part.place.as_mut()) {
                let own = LeaseId::from(100 + i as u64);
                names.insert(place.id, own);
                place.id = own;
            }
            if step.verb == Verb::Lease {
                // Nothing is granted over several slots, and what one of them grants could not be
                // taken back if another one denies.
                step.verb = Verb::Acquire;
            }
            for part in &mut step.parts {
                part.limit = 0;
            }
        }
        self
    }

    fn over(
        windows: BoxedStrategy<Duration>,
        pauses: BoxedStrategy<u64>,
    ) -> impl Strategy<Value = Self> {
        let subjects = proptest::collection::vec(subject(windows), SUBJECTS);
        let steps = proptest::collection::vec(step(pauses), 1..60);
        (subjects, steps).prop_map(|(subjects, steps)| Self { subjects, steps })
    }
}

impl Scenario {
    /// The checks of one step, on keys named by prefix and subject. `known` has what earlier steps
    /// got, which is what is given back.
    pub(crate) fn checks<'a>(
        &'a self,
        step: &Step,
        space: &'a KeySpace<'a>,
        names: &'a [String],
        known: &Known,
    ) -> Vec<Check<'a>> {
        let check = |part: &Part| {
            let key = Key::new(&names[part.subject]).map(|key| key.within(space));
            let key = key.unwrap_or_else(|error| panic!("{error}"));
            let (limit, cost) = (part.limit(&self.subjects), part.cost(&self.subjects));
            let check = Check::new(key, limit, cost).unwrap_or_else(|error| panic!("{error}"));
            let check = check.with_mode(part.mode);
            match step.verb {
                Verb::GiveBack if let Some(grant) = known.grants.get(&part.subject) => {
                    check.from_grant_until(grant.until)
                }
                Verb::Refund
                    if let Some(at) = known.taken.get(&part.subject).filter(|_| part.timed) =>
                {
                    check.taken_at(*at)
                }
                Verb::Use { .. } | Verb::Commit(_)
                    if let Some(spent) = part.spent(&self.subjects) =>
                {
                    check.spent(spent)
                }
                Verb::Acquire if limit.places().is_some() => {
                    part.place.map_or(check, |place| check.holding(place))
                }
                _ => check.with_extra(part.extra),
            }
        };
        step.parts.iter().map(check).collect()
    }
}

/// The latest grant and the latest acquisition of each subject.
#[derive(Debug, Default)]
pub(crate) struct Known {
    grants: HashMap<usize, Grant>,
    taken: HashMap<usize, Timestamp>,
}

impl Known {
    /// Learns from the outcomes of a step.
    pub(crate) fn learn(&mut self, step: &Step, outcomes: &[Outcome]) {
        for (part, outcome) in step.parts.iter().zip(outcomes) {
            if let Some(grant) = outcome.grant() {
                self.grants.insert(part.subject, grant);
            }
            // Some of them only: the time of a refund is not always that of the latest.
            if step.verb == Verb::Acquire && outcome.allowed && part.timed {
                self.taken.insert(part.subject, outcome.at);
            }
        }
    }
}

impl Part {
    fn limit(self, subjects: &[Subject]) -> &Limit {
        &subjects[self.subject].limits[self.limit]
    }

    fn cost(self, subjects: &[Subject]) -> Cost {
        let units = self.cost.of(self.limit(subjects).capacity());
        Cost::new(units).unwrap_or(Cost::ONE)
    }

    fn spent(self, subjects: &[Subject]) -> Option<Spent> {
        let SpentPick { cost, times, spending } = self.spent?;
        let units = cost.of(self.limit(subjects).capacity()).saturating_mul(times);
        Some(match spending {
            Spending::Within => Spent::within_the_limit(units),
            Spending::Overdraft => Spent::with_overdraft(units),
            Spending::Total => Spent::in_total(units),
        })
    }
}

impl CostPick {
    const fn of(self, capacity: u64) -> u64 {
        match self {
            Self::One => 1,
            Self::Some(n) => 1 + n % capacity,
            Self::All => capacity,
        }
    }
}

fn subject(windows: BoxedStrategy<Duration>) -> impl Strategy<Value = Subject> {
    let numbers = select(vec![1, 2, 3, 7, 100, 1000, 99_991, 999_983, u64::from(u32::MAX)]);
    (select(Algorithm::ALL.to_vec()), windows, numbers, 1..=4_u64).prop_map(
        |(algorithm, window, number, burst)| {
            let more = [number, number / 2 + 1, number.saturating_mul(2)];
            Subject { limits: more.iter().map(|n| limit(algorithm, *n, window, burst)).collect() }
        },
    )
}

fn limit(algorithm: Algorithm, number: u64, window: Duration, burst: u64) -> Limit {
    let made = match algorithm {
        // The window stands for a zone and a period: they stay while the number changes.
        Algorithm::Calendar if window < Duration::from_secs(1) => {
            Limit::calendar(number, Period::Day, "America/New_York")
        }
        Algorithm::Calendar if window < Duration::from_hours(1) => {
            Limit::calendar(number, Period::Day, "Australia/Lord_Howe")
        }
        Algorithm::Calendar => Limit::calendar(number, Period::Month, "Asia/Tokyo"),
        Algorithm::SlidingWindow => Limit::new(algorithm, number.min(Limit::MAX_LOG), window),
        Algorithm::Concurrency => Limit::new(algorithm, number.min(Limit::MAX_PLACES), window),
        _ => Limit::new(algorithm, number.min(u64::from(u32::MAX)), window),
    };
    let made = made.unwrap_or_else(|error| panic!("{algorithm} {number} {window:?}: {error}"));
    // Half of the buckets hold less than they pass in a window.
    made.clone().with_burst((number / burst).clamp(1, u64::from(u32::MAX))).unwrap_or(made)
}

fn step(pauses: BoxedStrategy<u64>) -> impl Strategy<Value = Step> {
    let parts = proptest::collection::hash_map(
        0..SUBJECTS,
        (0..3_usize, cost(), mode(), extra(), spent(), any::<bool>(), place()),
        1..=SUBJECTS,
    );
    (pauses, verb(), parts).prop_map(|(pause, verb, parts)| Step {
        pause,
        verb,
        parts: parts
            .into_iter()
            .map(|(subject, (limit, cost, mode, extra, spent, timed, place))| Part {
                subject,
                limit,
                cost,
                mode,
                extra,
                spent,
                timed,
                place,
            })
            .collect(),
    })
}

/// Mostly required, as in real batches.
fn mode() -> impl Strategy<Value = CheckMode> {
    prop_oneof![6 => Just(CheckMode::Required), 1 => select(CheckMode::ALL.to_vec())]
}

fn cost() -> impl Strategy<Value = CostPick> {
    prop_oneof![
        6 => Just(CostPick::One),
        2 => any::<u64>().prop_map(CostPick::Some),
        1 => Just(CostPick::All),
    ]
}

/// Mostly less than the limit or a little more, sometimes more than a debt can be.
fn spent() -> impl Strategy<Value = Option<SpentPick>> {
    let times = select(vec![0, 1, 1, 1, 2, 3, 40]);
    let spending = select(vec![Spending::Within, Spending::Overdraft, Spending::Total]);
    let pick = (cost(), times, spending);
    let pick = pick.prop_map(|(cost, times, spending)| SpentPick { cost, times, spending });
    prop_oneof![1 => Just(None), 4 => pick.prop_map(Some)]
}

/// Holds that end between two steps, and ones that last for many.
fn extra() -> impl Strategy<Value = Extra> {
    let units = select(vec![1, 2, 5, 100, u32::MAX]);
    let hold = select(vec![1, 1_000, 200_000, 999_983]).prop_map(Duration::from_micros);
    (units, hold).prop_map(|(units, hold)| Extra::new(units, hold))
}

/// Mostly one of a few leases, so that acquisitions are repeated, renewed and released.
fn place() -> impl Strategy<Value = Option<Place>> {
    let place = (id(), lease()).prop_map(|(id, lease)| Some(Place { id, lease }));
    prop_oneof![1 => Just(None), 3 => place]
}

fn id() -> impl Strategy<Value = LeaseId> {
    (1..4_u64).prop_map(LeaseId::from)
}

fn lease() -> impl Strategy<Value = Duration> {
    select(vec![1, 5, 1000, 60_000, 3_600_000]).prop_map(Duration::from_millis)
}

fn verb() -> impl Strategy<Value = Verb> {
    prop_oneof![
        12 => Just(Verb::Acquire),
        3 => Just(Verb::Peek),
        5 => (id(), lease()).prop_map(|(id, lease)| Verb::Reserve { id, lease }),
        4 => (id(), lease()).prop_map(|(id, lease)| Verb::Use { id, lease }),
        4 => id().prop_map(Verb::Commit),
        3 => id().prop_map(Verb::Cancel),
        3 => Just(Verb::Refund),
        6 => Just(Verb::Lease),
        4 => Just(Verb::GiveBack),
        1 => Just(Verb::Reset),
    ]
}

fn any_pause() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => Just(0),
        2 => 1..10_u64,
        3 => 1..2_000_u64,
        3 => 1..1_000_000_u64,
        2 => 1..90_000_000_u64,
        1 => 1..200_000_000_000_u64,
        1 => 1..40_000_000_000_000_u64,
    ]
}
