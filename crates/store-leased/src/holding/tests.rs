use headgate::{Cost, Key};

use super::*;

const HOLD: u64 = 200_000;
const NOW: u64 = 5_000_000;

fn bucket(units: u64) -> Limit {
    Limit::token_bucket(units, Duration::from_secs(1)).unwrap()
}

fn check(limit: &Limit, cost: u64) -> Check<'_> {
    let check = Check::new(Key::new("u").unwrap(), limit, Cost::new(cost).unwrap()).unwrap();
    check.with_extra(Extra::new(100, micros(HOLD)))
}

fn hand(units: u64, until: u64) -> Hand {
    Hand { units, until, granted_until: Timestamp::from_micros(until) }
}

/// What is held of a bucket of 1,000, last used now.
fn holding(hands: &[Hand]) -> Holding {
    let mut holding = Holding::new(&check(&bucket(1_000), 1), NOW);
    for hand in hands {
        holding.add(*hand);
    }
    holding
}

fn denial(cost: u64, until: u64) -> Denial {
    Denial { cost, remaining: cost - 1, until, retry_at: until + 5 }
}

#[test]
fn a_subject_is_idle_a_second_after_its_last_call_if_nothing_would_be_lost() {
    const LATER: u64 = NOW + 1_000_001;
    let is_idle = |change: fn(&mut Holding)| {
        let mut holding = holding(&[]);
        change(&mut holding);
        holding.is_idle(LATER)
    };
    assert!(is_idle(|_| {}));
    assert!(is_idle(|it| it.add(hand(1, LATER))), "its grant has ended");
    assert!(is_idle(|it| it.denial = Some(denial(1, LATER))), "its denial has ended");
    assert!(!holding(&[]).is_idle(LATER - 1));
    assert!(!is_idle(|it| it.flight = Some(Arc::default())));
    assert!(!is_idle(|it| it.waiting = 1));
    assert!(is_idle(|it| it.outdated = holding(&[hand(1, LATER)]).end_all()), "it has ended");
    assert!(!is_idle(|it| it.outdated = holding(&[hand(1, LATER + 1)]).end_all()));
    assert!(!is_idle(|it| it.add(hand(1, LATER + 1))));
    assert!(!is_idle(|it| it.denial = Some(denial(1, LATER + 1))));
    assert!(!is_idle(|it| it.last.until = LATER + 1));
}

#[test]
fn one_new_request_asks_for_more_and_the_others_take_from_what_is_held() {
    let limit = bucket(1_000);
    let check = check(&limit, 1);
    let due = Refill::Due { below: 100, at: u64::MAX };
    let mut holding = holding(&[hand(10, NOW + HOLD)]);
    let takes = |holding: &mut Holding, turn| {
        matches!(holding.decide(&check, turn, NOW), Local::Admitted(..))
    };
    holding.refill = due;
    assert!(takes(&mut holding, Turn::Waited));
    assert!(takes(&mut holding, Turn::Refused));
    holding.flight = Some(Arc::default());
    assert!(takes(&mut holding, Turn::New), "a call is under way");
    holding.flight = None;
    holding.decide(&check.without_extra(), Turn::New, NOW);
    assert_eq!(holding.refill, due, "it cannot ask for more");

    assert!(!takes(&mut holding, Turn::New));
    assert!(takes(&mut holding, Turn::New), "another one asks");
    assert!(!takes(&mut holding, Turn::Calls), "this one");
    holding.refill = Refill::Never;
    assert!(takes(&mut holding, Turn::Calls));
}

#[test]
fn a_call_is_needed_for_units_that_are_not_held_and_to_have_more() {
    let limit = bucket(1_000);
    let mut holding = holding(&[hand(5, NOW + HOLD)]);
    let needs_call = |holding: &Holding, cost| holding.needs_call(&check(&limit, cost), NOW);
    assert_eq!([5, 6].map(|cost| needs_call(&holding, cost)), [false, true]);
    holding.waiting = 1;
    assert_eq!([4, 5].map(|cost| needs_call(&holding, cost)), [false, true]);
    holding.refill = Refill::Claimed;
    assert!(needs_call(&holding, 1));
}

#[test]
fn an_order_is_the_smaller_for_units_that_are_used_before_they_go_back() {
    let order = |left: u64| {
        let mut holding = holding(&[]);
        // 2, 6, 14, 30, 62 and 126 are expected.
        for hold in 1..=5 {
            holding.pace.count(1_000);
            holding.order(NOW + hold * HOLD, HOLD, u64::MAX);
        }
        let now = NOW + 6 * HOLD;
        holding.add(hand(left, now + HOLD / 2));
        holding.pace.count(1_000);
        holding.order(now, HOLD, u64::MAX)
    };
    assert_eq!(order(0), 94 + 9);
    assert_eq!(order(20), 94 + 9 - 20);
    // They go back an eighth of a hold before their end.
    assert_eq!(order(1_000), 94 + 9 - 126 * 3 / 8);
}

#[test]
fn units_that_others_wait_for_are_left_to_them() {
    let limit = bucket(1_000);
    let mut holding = holding(&[hand(5, NOW + HOLD)]);
    holding.waiting = 3;
    assert_eq!(holding.take(&check(&limit, 3), Turn::New, NOW), None);
    assert_eq!(holding.take(&check(&limit, 3), Turn::Calls, NOW), None);
    assert!(holding.take(&check(&limit, 2), Turn::New, NOW).is_some());
    assert!(holding.take(&check(&limit, 3), Turn::Waited, NOW).is_some());
}

#[test]
fn a_check_without_an_extra_takes_nothing_from_what_is_held() {
    let limit = bucket(1_000);
    let mut holding = holding(&[hand(5, NOW + HOLD)]);
    assert_eq!(holding.take(&check(&limit, 1).without_extra(), Turn::New, NOW), None);
}

#[test]
fn no_unit_is_handed_out_at_the_end_of_its_grant() {
    let limit = bucket(1_000);
    let mut holding = holding(&[hand(5, NOW), hand(5, NOW + 1)]);
    assert_eq!(holding.units(NOW), 5);
    assert_eq!(holding.take(&check(&limit, 5), Turn::New, NOW), Some(hand(5, NOW + 1)));
    assert_eq!(holding.take(&check(&limit, 5), Turn::New, NOW), None);
}

#[test]
fn a_grant_that_is_used_up_is_not_held() {
    let limit = bucket(1_000);
    let mut holding = holding(&[hand(5, NOW + 1), hand(6, NOW + 2)]);
    let held = |units, until| Some(Grant { units, until: Timestamp::from_micros(until) });
    assert_eq!(holding.held(NOW), held(11, NOW + 2));
    holding.take(&check(&limit, 6), Turn::New, NOW).unwrap();
    assert_eq!(holding.held(NOW), held(5, NOW + 1));
    holding.take(&check(&limit, 5), Turn::New, NOW).unwrap();
    assert_eq!(holding.held(NOW), None);
}

#[test]
fn the_grant_that_ends_first_is_used_first() {
    let limit = bucket(1_000);
    let mut holding = holding(&[hand(2, NOW + 20), hand(1, NOW + 10), hand(3, NOW + 30)]);
    let ends = [(); 6].map(|()| {
        let taken = holding.take(&check(&limit, 1), Turn::New, NOW).unwrap();
        taken.until - NOW
    });
    assert_eq!(ends, [10, 20, 20, 30, 30, 30]);
}

#[test]
fn units_of_one_grant_end_when_the_earlier_call_says() {
    let mut holding = holding(&[hand(2, NOW + 20)]);
    let granted_until = Timestamp::from_micros(NOW + 20);
    holding.add(Hand { units: 3, until: NOW + 15, granted_until });
    assert_eq!(holding.hands[..], [Hand { units: 5, until: NOW + 15, granted_until }]);
}

#[test]
fn a_denial_is_repeated_for_its_cost_until_it_ends() {
    let limit = bucket(1_000);
    let mut holding = holding(&[]);
    holding.denial = Some(denial(2, NOW + 10));
    let of = |cost, now| holding.denial(&check(&limit, cost), now);
    let repeated = of(2, NOW + 9).unwrap();
    assert_eq!((repeated.remaining, repeated.retry_after), (1, micros(6)));
    assert_eq!([of(1, NOW), of(3, NOW), of(2, NOW + 10)], [None; 3]);
}

#[test]
fn an_answer_is_recalled_until_it_ends_for_costs_that_it_admits() {
    let limit = bucket(1_000);
    let mut holding = holding(&[]);
    let at = Timestamp::from_micros(7);
    holding.last = Answer { sent: NOW, at, reset_at: NOW + 100, remaining: 3, until: NOW + 10 };
    let recall = |cost, now| holding.recall(&check(&limit, cost), now);
    let recalled = Outcome::admission(1_000, 3, micros(91), at.plus(9)).leased();
    assert_eq!(recall(3, NOW + 9), Some(recalled));
    assert_eq!([recall(4, NOW + 9), recall(3, NOW + 10)], [None; 2]);
}

#[test]
fn the_last_call_denied_all_costs_from_the_denied_one_on_under_its_limit() {
    let (limit, other) = (bucket(1_000), bucket(900));
    let mut holding = holding(&[]);
    assert!(!holding.was_denied(&check(&limit, 2)));
    holding.denial = Some(denial(2, NOW));
    let was_denied = [1, 2, 3].map(|cost| holding.was_denied(&check(&limit, cost)));
    assert_eq!(was_denied, [false, true, true]);
    assert!(!holding.was_denied(&check(&other, 2)));
}

/// Learns that the store admitted `cost`.
fn learn_admission(holding: &mut Holding, cost: u64) -> u64 {
    let outcome = Outcome::admission(1_000, 500, micros(HOLD), Timestamp::from_micros(7));
    let times = CallTimes { sent: NOW, arrived: NOW };
    holding.learn(&check(&bucket(1_000), cost).without_extra(), &outcome, times, HOLD)
}

#[test]
fn units_of_a_grant_that_has_ended_are_lost_once() {
    let mut holding = holding(&[hand(3, NOW), hand(4, NOW + 1), hand(0, NOW + 2)]);
    assert_eq!(learn_admission(&mut holding, 1), 3);
    assert_eq!(holding.hands[..], [hand(4, NOW + 1)]);
    assert_eq!(learn_admission(&mut holding, 1), 0);
}

#[test]
fn an_admission_lifts_the_denial_of_costs_up_to_its_own() {
    let is_denied = [1, 2, 3].map(|cost| {
        let mut holding = holding(&[]);
        holding.denial = Some(denial(cost, NOW + 10));
        learn_admission(&mut holding, 2);
        holding.denial.is_some()
    });
    assert_eq!(is_denied, [false, false, true]);
}

#[test]
fn units_of_an_earlier_limit_that_do_not_go_back_at_once_do_when_they_are_due() {
    let ends = [NOW + 10, NOW + 20, NOW + 30];
    let mut holding = holding(&ends.map(|end| hand(5, end)));
    let changed = bucket(900);
    let at_once = holding.replace(&check(&changed, 1), [NOW; 2], 1);
    assert_eq!((at_once.len(), holding.units(NOW)), (1, 0));
    let later = ends.map(|end| holding.end(Timestamp::from_micros(end)));
    let returned: Vec<Return> = at_once.into_iter().chain(later.into_iter().flatten()).collect();
    assert_eq!(returned.iter().map(|it| it.hand).collect::<Vec<_>>(), ends.map(|end| hand(5, end)));
    assert!(returned.iter().all(|it| it.limit == changed), "which applies at the store by now");
}

#[test]
fn units_of_earlier_limits_are_forgotten_when_their_grants_have_ended() {
    let mut holding = holding(&[hand(5, NOW + 10), hand(5, NOW + 20)]);
    for (units, now, left) in [(900, NOW + 9, 2), (800, NOW + 10, 1), (700, NOW + 20, 0)] {
        assert!(holding.replace(&check(&bucket(units), 1), [now; 2], 0).is_empty());
        assert_eq!(holding.outdated.len(), left, "{units}");
    }
}
