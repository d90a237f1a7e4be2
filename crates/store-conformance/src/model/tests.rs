//! The model agrees with the naive implementation, and its predictions come true.

use std::time::Duration;

use headgate::{
    Account, Algorithm, Check, CheckMode, Cost, KeySpace, LeaseId, Limit, Outcome, Timestamp, Verb,
    limit::Parameters,
};
use proptest::prelude::*;

use super::{Model, naive::Naive};
use crate::scenario::{Known, Scenario};

const START: Timestamp = Timestamp::from_micros(1_772_928_000_000_000);

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_answer_about_the_future_comes_true(scenario in Scenario::any()) {
        let names = names();
        let (mut model, mut known) = (Model::default(), Known::default());
        let mut now = START;
        for step in &scenario.steps {
            now = now.plus(step.pause);
            let checks = scenario.checks(step, &KeySpace::EMPTY, &names, &known);
            let outcomes = model.apply(step.verb, &checks, &vec![now; checks.len()]);
            known.learn(step, &outcomes);
            for (check, outcome) in checks.iter().zip(outcomes) {
                let account = &model.accounts[&check.key().to_string()];
                retry_after_is_the_earliest_time(account, check, &outcome)?;
                remaining_is_what_is_left(account, check, &outcome)?;
                reset_after_is_when_all_is_back(account, check, &outcome)?;
            }
        }
    }

    #[test]
    fn answers_are_those_of_the_naive_algorithms(scenario in Scenario::any()) {
        let names = names();
        let (mut model, mut known) = (Model::default(), Known::default());
        let mut naive: Vec<Naive> = names.iter().map(|_| Naive::default()).collect();
        let mut now = START;
        for step in &scenario.steps {
            now = now.plus(step.pause);
            let mut outcomes = Vec::new();
            for check in scenario.checks(step, &KeySpace::EMPTY, &names, &known) {
                // One by one: other tests cover batches.
                let check = check.with_mode(CheckMode::Required);
                let subject: usize = check.key().to_string().parse().unwrap();
                let expected = naive[subject].apply(step.verb, &check, now);
                let outcome = model.apply(step.verb, std::slice::from_ref(&check), &[now])[0];
                outcomes.push(outcome);
                let granted = outcome.grant().map_or(0, |grant| grant.units);
                prop_assert_eq!(
                    (outcome.allowed, outcome.remaining, granted),
                    expected,
                    "{:?} {:?} at {:?}",
                    step.verb, check, now
                );
            }
            known.learn(step, &outcomes);
        }
    }

    #[test]
    fn nobody_gets_more_than_the_limit(scenario in Scenario::any()) {
        let names = names();
        let mut model = Model::default();
        let mut admitted: Vec<Vec<(u64, u64)>> = vec![Vec::new(); names.len()];
        let mut now = START;
        for step in &scenario.steps {
            now = now.plus(step.pause);
            // Only acquisitions, one limit each: no refunds and no changes.
            for (i, subject) in scenario.subjects.iter().enumerate() {
                let limit = &subject.limits[0];
                let cost = Cost::new(1 + step.pause % limit.capacity()).unwrap();
                let check = Check::new(headgate::Key::new(&names[i]).unwrap(), limit, cost).unwrap();
                if model.apply(Verb::Acquire, &[check], &[now])[0].allowed {
                    admitted[i].push((now.as_micros(), cost.get()));
                }
            }
        }
        for (subject, admitted) in scenario.subjects.iter().zip(&admitted) {
            within_the_limit(&subject.limits[0], admitted)?;
        }
    }
}

#[test]
fn answers_about_long_logs_are_never_too_early() {
    let limit = Limit::sliding_window(2_000, Duration::from_hours(1)).unwrap();
    let id = LeaseId::from(1);
    let check = |cost| {
        Check::new(headgate::Key::new("log").unwrap(), &limit, Cost::new(cost).unwrap()).unwrap()
    };
    let (mut model, mut now) = (Model::default(), START);
    let reserve = Verb::Reserve { id, lease: Duration::from_mins(30) };
    assert!(model.apply(reserve, &[check(100)], &[now])[0].allowed);
    for i in 0..1_000 {
        now = now.plus(1_000_000);
        assert!(model.apply(Verb::Acquire, &[check(1 + i % 2)], &[now])[0].allowed);
    }
    let mut foreseen = 0;
    for cost in [1, 401, 500, 501, 700, 1_000, 1_500, 1_900, 2_000] {
        let outcome = model.apply(Verb::Peek, &[check(cost)], &[now])[0];
        let account = &model.accounts["log"];
        let permits = |at| later(account, &limit, at).permits(&check(cost), Verb::Acquire, at);
        assert!(permits(outcome.at + outcome.retry_after), "{cost} {outcome:?}");
        let full = later(account, &limit, outcome.at + outcome.reset_after);
        assert_eq!(full.outcome(&limit, Verb::Peek, Cost::ONE, now, true).remaining, 2_000);
        foreseen += usize::from(outcome.allowed);
    }
    assert_eq!(foreseen, 1, "the others wait");
}

fn names() -> Vec<String> {
    (0..3).map(|i| i.to_string()).collect()
}

/// The account at `then`, if nothing happens until then.
fn later(account: &Account, limit: &Limit, then: Timestamp) -> Account {
    let mut account = account.clone();
    account.settle(limit, then);
    account
}

fn retry_after_is_the_earliest_time(
    account: &Account,
    check: &Check<'_>,
    outcome: &Outcome,
) -> Result<(), TestCaseError> {
    let admits_at = |then| later(account, check.limit(), then).permits(check, Verb::Acquire, then);
    let wait = outcome.retry_after.as_micros() as u64;
    if outcome.allowed {
        prop_assert_eq!(wait, 0);
        return Ok(());
    }
    prop_assert!(admits_at(outcome.at.plus(wait)), "still refused: {:?} {:?}", check, outcome);
    if wait > 0 {
        prop_assert!(
            !admits_at(outcome.at.plus(wait - 1)),
            "a tick late: {:?} {:?}",
            check,
            outcome
        );
    }
    Ok(())
}

fn remaining_is_what_is_left(
    account: &Account,
    check: &Check<'_>,
    outcome: &Outcome,
) -> Result<(), TestCaseError> {
    let admits = |units| match Cost::new(units) {
        Ok(cost) => Check::new(check.key(), check.limit(), cost)
            .is_ok_and(|check| account.permits(&check, Verb::Acquire, outcome.at)),
        Err(_) => true,
    };
    prop_assert!(outcome.remaining <= outcome.limit);
    prop_assert!(admits(outcome.remaining), "{:?} {:?}", check, outcome);
    prop_assert!(!admits(outcome.remaining + 1), "{:?} {:?}", check, outcome);
    Ok(())
}

fn reset_after_is_when_all_is_back(
    account: &Account,
    check: &Check<'_>,
    outcome: &Outcome,
) -> Result<(), TestCaseError> {
    let limit = check.limit();
    let left_at = |then| {
        let later = later(account, limit, then);
        later.outcome(limit, Verb::Peek, check.cost(), then, true).remaining
    };
    let wait = outcome.reset_after.as_micros() as u64;
    prop_assert_eq!(left_at(outcome.at.plus(wait)), limit.capacity());
    if wait > 0 {
        prop_assert!(
            left_at(outcome.at.plus(wait - 1)) < limit.capacity(),
            "{:?} {:?}",
            check,
            outcome
        );
    }
    Ok(())
}

/// Adds up the admitted units by the definition of each algorithm.
fn within_the_limit(limit: &Limit, admitted: &[(u64, u64)]) -> Result<(), TestCaseError> {
    let most = u128::from(limit.capacity());
    for (i, (from, _)) in admitted.iter().enumerate() {
        let mut sum = 0_u128;
        for (at, cost) in &admitted[i..] {
            sum += u128::from(*cost);
            let allowed = match limit.parameters() {
                Parameters::TokenBucket(bucket) | Parameters::LeakyBucket(bucket) => {
                    let refilled = u128::from(at - from) * u128::from(bucket.rate());
                    most + refilled / u128::from(bucket.window())
                }
                parameters => {
                    let same = window_of(parameters, *at) == window_of(parameters, *from);
                    // Places without a name are held for a whole window.
                    let sliding = [Algorithm::SlidingWindow, Algorithm::Concurrency];
                    let slides = sliding.contains(&limit.algorithm());
                    if same || slides && at - from < window(limit) { most } else { u128::MAX }
                }
            };
            prop_assert!(sum <= allowed, "{:?} admitted {} from {} to {}", limit, sum, from, at);
        }
    }
    Ok(())
}

fn window(limit: &Limit) -> u64 {
    limit.window().map_or(0, |window| window.as_micros() as u64)
}

/// The aligned window that a time is in; every time by itself where windows slide.
fn window_of(parameters: &Parameters, at: u64) -> u64 {
    match parameters {
        Parameters::FixedWindow(w) => at / w.window(),
        Parameters::SlidingWindowCounter(w) => at / w.window(),
        Parameters::Calendar(c) => c.bounds(Timestamp::from_micros(at)).0,
        Parameters::TokenBucket(_)
        | Parameters::LeakyBucket(_)
        | Parameters::SlidingWindow(_)
        | Parameters::Concurrency(_) => at,
    }
}
