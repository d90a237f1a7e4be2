//! The ledger against a model of it: random increments, replays, resets, changes and losses.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures_util::future::join_all;
use headgate::ManualClock;
use headgate_persistence::{Database, DatabaseConfig};
use headgate_quota::{
    Draft, QuotaPolicy,
    usecase::{IncrementError, IncrementUsage, Incremented},
};
use headgate_store_memory::MemoryStore;
use proptest::{collection::vec, prelude::*};

use super::setup::{Replica, draft};
use crate::support::{TIMEOUT, at, run};

/// A step of a scenario.
#[derive(Clone, Debug)]
enum Step {
    /// Concurrent increments.
    Increment(Vec<(u64, Option<u8>)>),
    Reset,
    Limit(u64),
    Enable(bool),
    /// Sets the counter.
    Show(u64),
    CounterFails(bool),
    NextDay,
    Pass(u64),
}

/// The expected state.
struct Model {
    limit: u64,
    enabled: bool,
    used: u64,
    /// Amount and result by request id.
    charged: HashMap<u8, (u64, u64, u64)>,
    day: usize,
    /// Kind, day and usage of recorded events.
    events: Vec<(&'static str, usize, u64)>,
}

const THRESHOLD: u64 = 50;

fn step() -> impl Strategy<Value = Step> {
    let increment = (1..6_u64, prop_oneof![2 => Just(None), 1 => (0..6_u8).prop_map(Some)]);
    prop_oneof![
        12 => vec(increment, 1..6).prop_map(Step::Increment),
        1 => Just(Step::Reset),
        2 => (1..40_u64).prop_map(Step::Limit),
        1 => any::<bool>().prop_map(Step::Enable),
        2 => (0..40_u64).prop_map(Step::Show),
        1 => any::<bool>().prop_map(Step::CounterFails),
        1 => Just(Step::NextDay),
        1 => (0..2_000_u64).prop_map(Step::Pass),
    ]
}

// === impl Model ===

impl Model {
    fn new(limit: u64) -> Self {
        let charged = HashMap::new();
        Self { limit, enabled: true, used: 0, charged, day: 0, events: Vec::new() }
    }

    fn record(&mut self, kind: &'static str) {
        if !self.events.iter().any(|events| (events.0, events.1) == (kind, self.day)) {
            self.events.push((kind, self.day, self.used));
        }
    }

    /// Returns true if the response is correct.
    fn answers(
        &mut self,
        (amount, request_id): (u64, Option<u8>),
        answer: Result<Incremented, IncrementError>,
    ) {
        if let Some(charged) = request_id.and_then(|id| self.charged.get(&id)) {
            if charged.0 != amount {
                assert!(matches!(answer, Err(IncrementError::Conflict(_))), "{answer:?}");
                return;
            }
            let answer = answer.unwrap();
            assert!(answer.allowed && answer.replayed);
            assert_eq!((answer.usage.used, answer.usage.limit), (charged.1, charged.2));
            return;
        }
        // With a request id the ledger decides first, and a disabled policy charges nothing.
        if amount > self.limit && (self.enabled || request_id.is_none()) {
            assert!(matches!(answer, Err(IncrementError::Invalid(_))), "{answer:?}");
            return;
        }
        if !self.enabled {
            assert!(answer.unwrap().allowed);
            return;
        }
        let fits = self.used + amount <= self.limit;
        if fits {
            self.used += amount;
            if let Some(id) = request_id {
                self.charged.insert(id, (amount, self.used, self.limit));
            }
            if self.used * 100 >= self.limit * THRESHOLD {
                self.record("QUOTA_THRESHOLD_REACHED");
            }
        }
        if !fits || self.used >= self.limit {
            self.record("QUOTA_EXCEEDED");
        }
        let answer = answer.unwrap();
        assert_eq!((answer.allowed, answer.replayed), (fits, false));
        assert_eq!(answer.usage.limit, self.limit);
        if fits {
            assert_eq!(answer.usage.used, self.used);
        } else {
            // It may have been denied before the other increments were charged.
            let used = answer.usage.used;
            assert!(used <= self.used && used + amount > self.limit, "{used}");
        }
    }
}

async fn take(replica: &Replica, policy: &QuotaPolicy, model: &mut Model, step: Step) {
    let author = replica.author();
    let change = async |draft: Draft| {
        replica.policies.amend(&policy.id, &draft, &author).await.unwrap();
    };
    match step {
        Step::Increment(some) => {
            let ids: Vec<_> = some.iter().map(|one| one.1.map(|id| id.to_string())).collect();
            let sent = some.iter().zip(&ids).map(|((amount, _), id)| {
                replica.increments.increment(&policy.id, *amount, id.as_deref())
            });
            let answers = join_all(sent).await;
            for (one, answer) in some.into_iter().zip(answers) {
                model.answers(one, answer);
            }
        }
        Step::Reset => {
            replica.resets.reset(&policy.id, "again", replica.author()).await.unwrap();
            model.used = 0;
        }
        Step::Limit(limit) => {
            change(Draft { limit: limit.cast_signed().into(), ..Draft::default() }).await;
            model.limit = limit;
        }
        Step::Enable(enabled) => {
            change(Draft { enabled: enabled.into(), ..Draft::default() }).await;
            model.enabled = enabled;
        }
        Step::Show(used) => replica.show(policy, used).await,
        Step::CounterFails(down) => replica.counter.fail(down),
        Step::NextDay => {
            replica.pass(Duration::from_hours(24));
            (model.day, model.used) = (model.day + 1, 0);
            model.charged.clear();
        }
        Step::Pass(millis) => replica.pass(Duration::from_millis(millis)),
    }
}

async fn agrees(limit: u64, steps: Vec<Step>) {
    let config = DatabaseConfig::from_url("sqlite::memory:").unwrap().connect_timeout(TIMEOUT);
    let database = Database::open(&config);
    database.migrate().await.unwrap();
    let clock = Arc::new(ManualClock::new(at(0)));
    let store = Arc::new(MemoryStore::builder().clock(Arc::clone(&clock)).build());
    let replica = Replica::with(database, clock, store, IncrementUsage::CAPACITY);
    let percent = THRESHOLD.cast_signed();
    let draft = Draft { alert_threshold_percent: percent.into(), ..draft(limit.cast_signed()) };
    let policy = replica.create(draft).await;
    let mut model = Model::new(limit);
    for step in steps {
        take(&replica, &policy, &mut model, step).await;
        assert_eq!(replica.kept(&policy).await, model.used);
        assert_eq!(replica.usage.usage(&policy.id).await.unwrap().used, model.used);
    }
    let expected: Vec<_> = model.events.iter().map(|events| (events.0, events.2)).collect();
    assert_eq!(replica.event_kinds().await, expected);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn the_ledger_agrees_with_its_model(limit in 1..30_u64, steps in vec(step(), 1..40)) {
        run(agrees(limit, steps));
    }
}
