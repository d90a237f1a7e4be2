//! Agreement with the model.

use std::{rc::Rc, time::Duration};

use futures_util::{FutureExt, future::LocalBoxFuture};
use headgate::{
    Batch, Check, Cost, Holders, Key, KeySpace, LeaseId, Limit, Outcome, StoreError, Timestamp,
    Verb, algorithm::concurrency::Holder,
};
use proptest::{
    strategy::Strategy,
    test_runner::{Config, TestCaseError, TestCaseResult, TestRunner},
};

use crate::{
    Fixture, Model,
    fixture::next_scenario,
    scenario::{Known, Scenario},
};

/// Start time of stores whose clock can be set: 2026-03-08, a day before New York's clocks change.
const START: Timestamp = Timestamp::from_micros(1_772_928_000_000_000);

/// Drives the store and the model side by side through random traffic of every
/// algorithm and verb, with limits that change on the way, and compares every answer.
///
/// `fixture` creates the store for one scenario: all start at the same time.
/// `block_on` runs a scenario to its end.
pub fn agrees_with_the_model(
    fixture: impl Fn() -> Rc<dyn Fixture>,
    cases: u32,
    block_on: impl Fn(LocalBoxFuture<'_, TestCaseResult>) -> TestCaseResult,
) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let settable = fixture().set_time(START);
    let strategy = if settable { Scenario::any().boxed() } else { Scenario::quick().boxed() };
    let strategy = if fixture().decides_at_once() {
        strategy
    } else {
        strategy.prop_map(Scenario::over_several_places).boxed()
    };
    let outcome = TestRunner::new(config)
        .run(&strategy, |scenario| block_on(play(&*fixture(), &scenario, settable).boxed_local()));
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

async fn play(fixture: &dyn Fixture, scenario: &Scenario, settable: bool) -> TestCaseResult {
    let prefix = format!("{}conformance:{}:", fixture.key_prefix(), next_scenario());
    let space = KeySpace::new(&prefix, "");
    let names: Vec<String> = (0..scenario.subjects.len()).map(|i| i.to_string()).collect();
    let mut model = Model::default();
    let mut known = Known::default();
    let mut now = START;
    for (i, step) in scenario.steps.iter().enumerate() {
        now = now.plus(step.pause);
        fixture.set_time(now);
        let checks = scenario.checks(step, &space, &names, &known);
        let batch = Batch::new(checks.iter().copied()).map_err(failure)?;
        let answered = fixture.store().apply(step.verb, &batch).await;
        if !checks.iter().all(|check| fixture.claims(check.limit())) {
            if matches!(answered, Err(StoreError::Unsupported(_))) {
                continue;
            }
            return Err(TestCaseError::fail(format!("step {i} is not refused: {answered:?}")));
        }
        let answered = answered.map_err(failure)?;
        let times: Vec<Timestamp> = answered.iter().map(|outcome| outcome.at).collect();
        if settable && times.iter().any(|at| *at != now) {
            return Err(TestCaseError::fail(format!("step {i}: at {times:?}, not {now}")));
        }
        known.learn(step, &answered);
        let expected = model.apply(step.verb, &checks, &times);
        if expected[..] != answered[..] {
            let message = format!("step {i} {step:?}:\n model {expected:?}\n store {answered:?}");
            return Err(TestCaseError::fail(message));
        }
        compare_holders(fixture, &model, &checks).await?;
    }
    Ok(())
}

/// Compares the holders of every concurrency limit among `checks`.
async fn compare_holders(
    fixture: &dyn Fixture,
    model: &Model,
    checks: &[Check<'_>],
) -> TestCaseResult {
    for check in checks.iter().filter(|check| check.limit().places().is_some()) {
        let listed = fixture.store().holders(*check, Holders::MAX_LISTED).await;
        let listed = listed.map_err(failure)?;
        let expected = model.holders(check, Holders::MAX_LISTED, listed.at);
        if comparable(&expected) != comparable(&listed) {
            let message = format!("holders:\n model {expected:?}\n store {listed:?}");
            return Err(TestCaseError::fail(message));
        }
    }
    Ok(())
}

/// The end of a lease, its places, and its id if it was named.
type Row = (u64, u32, Option<LeaseId>);

/// The list without the ids of acquisitions that name no lease, which are random.
fn comparable(listed: &Holders) -> (u64, u64, Vec<Row>) {
    const LARGEST_NAMED: u64 = 1_000_000;
    let row = |holder: &Holder| {
        let named = Some(holder.id).filter(|id| id.get() <= LARGEST_NAMED);
        (holder.end, holder.places, named)
    };
    let mut rows: Vec<_> = listed.first.iter().map(row).collect();
    rows.sort_unstable();
    (listed.taken, listed.total, rows)
}

fn failure(error: impl std::fmt::Display) -> TestCaseError {
    TestCaseError::fail(error.to_string())
}

/// Sets the clock back under every algorithm: used units stay used until the clock has caught up,
/// and nothing is admitted twice.
pub async fn stands_still_when_its_clock_steps_back(fixture: &dyn Fixture) {
    let late = START.plus(3_600_000_000);
    assert!(fixture.set_time(late), "the fixture's clock can be set");
    for limit in limits_of_ten() {
        let name = next_scenario().to_string();
        let ask = async |verb| ask(fixture, verb, &name, &limit).await;
        fixture.set_time(late);
        assert_eq!(ask(Verb::Acquire).await.remaining, 9, "{limit:?}");
        fixture.set_time(Timestamp::from_micros(late.as_micros() - 30_000_000));
        assert_eq!(ask(Verb::Peek).await.remaining, 9, "{limit:?}");
        for left in (0..9).rev() {
            assert_eq!(ask(Verb::Acquire).await.remaining, left, "{limit:?}");
        }
        assert!(!ask(Verb::Acquire).await.allowed, "{limit:?}");
        fixture.set_time(late);
        let refused = ask(Verb::Acquire).await;
        assert!(!refused.allowed, "{limit:?}");

        let last = Duration::from_micros(1);
        fixture.set_time(refused.at + refused.reset_after.saturating_sub(last));
        assert_eq!(ask(Verb::Peek).await.reset_after, last, "{limit:?}");
    }
}

/// A limit of ten an hour (or a day) of every algorithm.
pub(crate) fn limits_of_ten() -> Vec<Limit> {
    headgate::Algorithm::ALL
        .into_iter()
        .map(|algorithm| match algorithm {
            headgate::Algorithm::Calendar => {
                Limit::calendar(10, headgate::algorithm::Period::Day, "UTC")
            }
            algorithm => Limit::new(algorithm, 10, Duration::from_hours(1)),
        })
        .map(|limit| limit.unwrap_or_else(|error| panic!("{error}")))
        .collect()
}

async fn ask(fixture: &dyn Fixture, verb: Verb, name: &str, limit: &Limit) -> Outcome {
    let prefix = format!("{}ten:{}:", fixture.key_prefix(), limit.algorithm());
    let space = KeySpace::new(&prefix, "");
    let key = Key::new(name).unwrap_or_else(|error| panic!("{error}")).within(&space);
    let check = Check::new(key, limit, Cost::ONE).unwrap_or_else(|error| panic!("{error}"));
    let answer = fixture.store().apply(verb, &Batch::from(check)).await;
    answer.unwrap_or_else(|error| panic!("{limit:?}: {error}"))[0]
}
