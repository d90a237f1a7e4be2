use std::mem::size_of;

use proptest::prelude::*;

use super::*;
use crate::{KeySpace, LeaseId, Timestamp, outcome::Detail};

const SECOND: u64 = 1_000_000;

fn limit() -> Limit {
    Limit::token_bucket(10, Duration::from_secs(60)).unwrap()
}

fn check<'a>(name: &'a str, limit: &'a Limit, cost: u64) -> Check<'a> {
    Check::new(Key::new(name).unwrap(), limit, Cost::new(cost).unwrap()).unwrap()
}

/// The answer of a store at `at`: a denial for `wait` seconds, or an admission if that is 0.
fn answer(at: u64, wait: u64) -> Outcome {
    Outcome {
        allowed: wait == 0,
        limit: 10,
        remaining: 0,
        reset_after: Duration::from_secs(60),
        retry_after: Duration::from_secs(wait),
        at: Timestamp::from_micros(at),
        degraded: None,
        detail: Detail::None,
        leased: false,
    }
}

fn learn(denials: &DenialCache, verb: Verb, check: Check<'_>, outcome: Outcome, now: u64) {
    denials.learn(verb, &check.into(), &[outcome], now);
}

fn wait(denials: &DenialCache, check: &Check<'_>, now: u64) -> Option<u64> {
    denials.find(check, now).map(|denial| denial.retry_after.as_secs())
}

#[test]
fn a_denial_holds_until_it_expires() {
    let (denials, limit) = (DenialCache::new(), limit());
    let one = check("u", &limit, 1);
    // The store's clock is far behind: only the length of the wait counts.
    learn(&denials, Verb::Acquire, one, answer(7, 30), 100 * SECOND);
    assert_eq!(wait(&denials, &one, 100 * SECOND), Some(30));
    assert_eq!(wait(&denials, &one, 129 * SECOND), Some(1));
    assert_eq!(denials.find(&one, 130 * SECOND - 1).unwrap().retry_after.as_micros(), 1);
    assert_eq!(wait(&denials, &one, 130 * SECOND), None);
    assert_eq!(wait(&denials, &check("v", &limit, 1), 100 * SECOND), None);
    let reset = denials.find(&one, 110 * SECOND).unwrap().reset_after;
    assert_eq!(reset, Duration::from_secs(50));
}

#[test]
fn a_denial_applies_to_larger_costs_only() {
    let (denials, limit) = (DenialCache::new(), limit());
    let cost = |cost| check("u", &limit, cost);
    let denied = Outcome { remaining: 3, ..answer(1, 40) };
    learn(&denials, Verb::Acquire, cost(5), denied, 0);
    assert_eq!(wait(&denials, &cost(4), 0), None);
    assert_eq!(wait(&denials, &cost(5), 0), Some(40));
    assert_eq!(wait(&denials, &cost(6), 0), Some(40));
    // The shorter wait of a smaller cost does not shorten that of the larger one.
    learn(&denials, Verb::Acquire, cost(4), Outcome { remaining: 3, ..answer(2, 10) }, 0);
    assert_eq!(wait(&denials, &cost(4), 0), Some(10));
    assert_eq!(wait(&denials, &cost(5), 0), Some(40));
    assert_eq!(wait(&denials, &cost(5), 20 * SECOND), Some(20));
    assert_eq!(wait(&denials, &cost(3), 0), None);
}

#[test]
fn a_denial_applies_to_its_limit_only() {
    let (denials, limit) = (DenialCache::new(), limit());
    learn(&denials, Verb::Acquire, check("u", &limit, 1), answer(1, 30), 0);
    let window = Duration::from_secs(60);
    let others = [
        Limit::token_bucket(11, window).unwrap(),
        Limit::token_bucket(11, window).unwrap().with_burst(10).unwrap(),
        Limit::token_bucket(10, window * 2).unwrap(),
        Limit::leaky_bucket(10, window).unwrap(),
        Limit::fixed_window(10, window).unwrap(),
    ];
    for other in &others {
        assert_eq!(wait(&denials, &check("u", other, 1), 0), None, "{other:?}");
    }
    assert_eq!(wait(&denials, &check("u", &limit.clone(), 1), 0), Some(30));
}

#[test]
fn calendars_differ_by_period_and_zone() {
    use crate::algorithm::Period::{Day, Month};
    let denials = DenialCache::new();
    let limit = |period, zone| Limit::calendar(10, period, zone).unwrap();
    learn(&denials, Verb::Acquire, check("u", &limit(Day, "UTC"), 1), answer(1, 30), 0);
    assert_eq!(wait(&denials, &check("u", &limit(Day, "UTC"), 1), 0), Some(30));
    assert_eq!(wait(&denials, &check("u", &limit(Day, "Asia/Tokyo"), 1), 0), None);
    assert_eq!(wait(&denials, &check("u", &limit(Month, "UTC"), 1), 0), None);
}

#[test]
fn a_later_admission_removes_a_denial_and_an_earlier_one_does_not() {
    let (denials, limit) = (DenialCache::new(), limit());
    let cost = |cost| check("u", &limit, cost);
    learn(&denials, Verb::Acquire, cost(2), answer(100, 30), 0);
    learn(&denials, Verb::Acquire, cost(2), answer(99, 0), 0);
    assert_eq!(wait(&denials, &cost(2), 0), Some(30), "admitted before it was denied");
    learn(&denials, Verb::Peek, cost(1), answer(101, 0), 0);
    assert_eq!(wait(&denials, &cost(2), 0), Some(30), "room for 1 is not room for 2");
    let degraded = crate::Degraded {
        source: crate::Source::FailMode(crate::FailMode::Open),
        cause: crate::FailCause::Timeout,
    };
    let unfounded = Outcome { degraded: Some(degraded), ..answer(101, 0) };
    learn(&denials, Verb::Peek, cost(2), unfounded, 0);
    assert_eq!(wait(&denials, &cost(2), 0), Some(30), "the store did not say so");
    learn(&denials, Verb::Peek, cost(2), answer(101, 0), 0);
    assert_eq!(wait(&denials, &cost(2), 0), None);

    learn(&denials, Verb::Acquire, cost(2), answer(102, 30), 0);
    learn(&denials, Verb::Acquire, cost(3), answer(103, 0), 0);
    assert_eq!(wait(&denials, &cost(2), 0), None, "room for 3 is room for 2");
}

#[test]
fn returned_units_remove_a_denial_however_the_key_is_split() {
    let (denials, limit) = (DenialCache::new(), limit());
    let (whole, space) = (check("user:u:60", &limit, 1), KeySpace::new("user:", ":60"));
    // A reset does not know the size of the limit.
    let unit = Limit::token_bucket(1, Duration::from_secs(60)).unwrap();
    let parts = Check::new(Key::new("u").unwrap().within(&space), &unit, Cost::ONE).unwrap();
    let id = LeaseId::from(1);
    for verb in [Verb::Reset, Verb::Refund, Verb::Cancel(id)] {
        learn(&denials, Verb::Acquire, whole, answer(1, 30), 0);
        learn(&denials, Verb::Commit(id), parts, answer(2, 0), 0);
        assert_eq!(wait(&denials, &whole, 0), Some(30), "a commit changes nothing");
        learn(&denials, verb, parts, answer(2, 0), 0);
        assert_eq!(wait(&denials, &whole, 0), None, "{verb:?}");
    }
}

#[test]
fn a_denial_stays_if_nothing_has_returned() {
    let (denials, limit) = (DenialCache::new(), limit());
    let (one, id) = (check("u", &limit, 1), LeaseId::from(1));
    learn(&denials, Verb::Acquire, one, answer(1, 30), 0);
    let settles = one.spent(crate::Spent::within_the_limit(1));
    for (verb, check) in
        [(Verb::Cancel(id), one), (Verb::Commit(id), settles), (Verb::GiveBack, one)]
    {
        // There is no such reservation or grant.
        learn(&denials, verb, check, answer(2, 30), 0);
        assert_eq!(wait(&denials, &one, 0), Some(30), "{verb:?}");
        // It only reports.
        learn(&denials, verb, check.with_mode(crate::CheckMode::Report), answer(2, 0), 0);
        assert_eq!(wait(&denials, &one, 0), Some(30), "{verb:?}");
        learn(&denials, verb, check, answer(2, 0), 0);
        assert_eq!(wait(&denials, &one, 0), None, "{verb:?}");
        learn(&denials, Verb::Acquire, one, answer(3, 30), 0);
    }
}

#[test]
fn only_denials_of_the_cost_are_cached() {
    let (denials, limit) = (DenialCache::new(), limit());
    let one = check("u", &limit, 1);
    let reserve = Verb::Reserve { id: LeaseId::from(1), lease: Duration::from_secs(1) };
    // Too many reservations are pending: there is room for the cost.
    for remaining in [1, 4] {
        learn(&denials, reserve, one, Outcome { remaining, ..answer(1, 30) }, 0);
        assert_eq!(wait(&denials, &one, 0), None);
    }
    let degraded = crate::Degraded {
        source: crate::Source::RememberedDenial,
        cause: crate::FailCause::Timeout,
    };
    learn(&denials, reserve, one, Outcome { degraded: Some(degraded), ..answer(1, 30) }, 0);
    assert_eq!(wait(&denials, &one, 0), None);
    learn(&denials, reserve, one, answer(1, 30), 0);
    assert_eq!(wait(&denials, &one, 0), Some(30));
}

#[test]
fn a_flood_of_denials_stays_in_bounds_and_keeps_those_that_expire_last() {
    assert!(size_of::<Entry>() * DenialCache::CAPACITY <= 3 << 20, "3 MiB");
    let (denials, limit) = (DenialCache::new(), limit());
    let victim = check("victim", &limit, 1);
    learn(&denials, Verb::Acquire, victim, answer(1, 3_600), 0);
    let names: Vec<String> = (0..4 * DenialCache::CAPACITY).map(|i| i.to_string()).collect();
    for name in &names {
        learn(&denials, Verb::Acquire, check(name, &limit, 1), answer(1, 60), 0);
    }
    assert_eq!(wait(&denials, &victim, 0), Some(3_600));
    let held = names.iter().filter(|name| wait(&denials, &check(name, &limit, 1), 0).is_some());
    let held = held.count();
    assert!(held <= DenialCache::CAPACITY && held > DenialCache::CAPACITY * 9 / 10, "{held}");

    // A denial that expires before all of them is not kept.
    let short = check("short", &limit, 1);
    learn(&denials, Verb::Acquire, short, answer(1, 59), 0);
    assert_eq!(wait(&denials, &short, 0), None);
    assert_eq!(wait(&denials, &victim, 0), Some(3_600));

    // A denial that expires later than all of them evicts one.
    let late = check("late", &limit, 1);
    learn(&denials, Verb::Acquire, late, answer(1, 61), 0);
    assert_eq!(wait(&denials, &late, 0), Some(61));

    // Expired denials make room for shorter ones.
    let newcomer = check("newcomer", &limit, 1);
    learn(&denials, Verb::Acquire, newcomer, answer(1, 1), 61 * SECOND);
    assert_eq!(wait(&denials, &newcomer, 61 * SECOND), Some(1));
}

proptest! {
    /// Compares with a plain list of all denials: a cost is denied if and only if an unexpired
    /// denial of the same or a lower cost exists.
    #[test]
    fn lookups_agree_with_a_simple_model(
        steps in prop::collection::vec((0_u64..4, 1_u64..4, 1_u64..30, 0_u64..5), 1..40),
    ) {
        let (denials, limit) = (DenialCache::new(), limit());
        let names = ["a", "b", "c", "d"];
        let mut held: Vec<(u64, u64, u64)> = Vec::new();
        let mut now = 0;
        for (i, (subject, cost, wait, pass)) in steps.into_iter().enumerate() {
            now += pass * SECOND;
            // As in a store: a higher cost waits longer.
            let wait = cost * 10 + wait;
            let one = check(names[subject as usize], &limit, cost);
            learn(&denials, Verb::Acquire, one, answer(i as u64, wait), now);
            let until = now + wait * SECOND;
            // A newer answer replaces the one to the same cost, and all that it implies.
            held.retain(|(s, c, u)| *s != subject || (*c != cost && (*c < cost || *u > until)));
            held.push((subject, cost, until));
            for (subject, name) in names.iter().enumerate() {
                for cost in 1..8 {
                    let fits = held.iter().filter(|(s, c, until)| {
                        *s == subject as u64 && *c <= cost && *until > now
                    });
                    let expected = fits.map(|(_, _, until)| until - now).max();
                    let found = denials.find(&check(name, &limit, cost), now);
                    let found = found.map(|denial| denial.retry_after.as_micros() as u64);
                    prop_assert_eq!(found, expected);
                }
            }
        }
    }
}
