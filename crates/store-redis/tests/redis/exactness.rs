//! Exact agreement with the model, on one server.

use std::{rc::Rc, sync::Arc, time::Duration};

use headgate::{
    Batch, Check, CheckMode, Cost, Key, LeaseId, Limit, ManualClock, Place, Store, Timestamp, Verb,
    algorithm::Period,
};
use headgate_store_conformance::{Fixture, golden, suite};
use headgate_testkit::{Redis, require};

use crate::support::{
    OnRedis, acquire, clients_never_get_more_than_the_limit, per_minute, runtime, store,
};

const START: u64 = 1_772_928_000_000_000;

/// Redis with a clock that the test sets.
fn at_our_time(runtime: &tokio::runtime::Runtime, redis: Redis) -> impl Fn() -> Rc<dyn Fixture> {
    let store = store(runtime, &redis.url());
    let fixture = OnRedis { store, clock: Some(Arc::new(redis)), key_prefix: "", is_spread: false };
    let fixture: Rc<dyn Fixture> = Rc::new(fixture);
    move || Rc::clone(&fixture)
}

#[test]
fn agrees_with_the_model_at_any_time() {
    let redis = require!(Redis::builder().fake_clock(START).start());
    let runtime = runtime();
    let fixture = at_our_time(&runtime, redis);
    suite::agrees_with_the_model(fixture, 256, |scenario| runtime.block_on(scenario));
}

#[test]
fn agrees_with_the_model_on_its_own_time() {
    let redis = require!(Redis::start());
    let runtime = runtime();
    let fixture = OnRedis::on_its_own_time(store(&runtime, &redis.url()), "");
    suite::agrees_with_the_model(
        || Rc::clone(&fixture),
        256,
        |scenario| runtime.block_on(scenario),
    );
}

#[test]
fn agrees_with_the_model_about_long_logs() {
    let redis = require!(Redis::builder().fake_clock(START).start());
    let runtime = runtime();
    let fixture = at_our_time(&runtime, redis);
    runtime.block_on(suite::agrees_with_the_model_about_long_logs(&*fixture()));
}

#[test]
fn agrees_with_the_model_about_many_holders() {
    let redis = require!(Redis::start());
    let runtime = runtime();
    let fixture = OnRedis::on_its_own_time(store(&runtime, &redis.url()), "");
    runtime.block_on(suite::agrees_with_the_model_about_many_holders(&*fixture));
}

#[test]
fn gives_the_golden_vectors() {
    let redis = require!(Redis::builder().fake_clock(START).start());
    let runtime = runtime();
    runtime.block_on(golden::replay(at_our_time(&runtime, redis)));
}

#[test]
fn stands_still_when_its_clock_steps_back() {
    let redis = require!(Redis::builder().fake_clock(START).start());
    let runtime = runtime();
    let fixture = at_our_time(&runtime, redis);
    runtime.block_on(suite::stands_still_when_its_clock_steps_back(&*fixture()));
}

#[test]
fn refuses_one_reservation_too_many_until_another_ends() {
    let redis = require!(Redis::builder().fake_clock(START).start());
    let runtime = runtime();
    let fixture = at_our_time(&runtime, redis);
    runtime.block_on(suite::refuses_one_reservation_too_many_until_another_ends(&*fixture()));
}

#[test]
fn a_limit_that_comes_with_a_reservation_raises_no_rate() {
    let redis = require!(Redis::start());
    let runtime = runtime();
    let fixture = OnRedis::on_its_own_time(store(&runtime, &redis.url()), "");
    runtime.block_on(suite::a_limit_that_comes_with_a_reservation_raises_no_rate(&*fixture));
}

#[test]
fn a_refund_under_a_smaller_limit_returns_no_more() {
    let redis = require!(Redis::builder().fake_clock(START).start());
    let runtime = runtime();
    let fixture = at_our_time(&runtime, redis);
    runtime.block_on(suite::a_refund_under_a_smaller_limit_returns_no_more(&*fixture()));
}

#[test]
fn remembers_the_latest_settlements() {
    let redis = require!(Redis::start());
    let runtime = runtime();
    let fixture = OnRedis::on_its_own_time(store(&runtime, &redis.url()), "");
    runtime.block_on(suite::remembers_the_latest_settlements(&*fixture));
}

#[test]
fn streams_stop_at_the_limit() {
    let redis = require!(Redis::start());
    let runtime = runtime();
    let fixture = OnRedis::on_its_own_time(store(&runtime, &redis.url()), "");
    runtime.block_on(suite::streams_stop_at_the_limit(&*fixture));
}

#[test]
fn never_more_holders_than_places() {
    let redis = require!(Redis::start());
    let runtime = runtime();
    let fixture = OnRedis::on_its_own_time(store(&runtime, &redis.url()), "");
    runtime.block_on(suite::never_more_holders_than_places(&*fixture));
}

#[test]
fn a_place_is_free_when_its_lease_ends() {
    let redis = require!(Redis::builder().fake_clock(START).start());
    let runtime = runtime();
    let fixture = at_our_time(&runtime, redis);
    runtime.block_on(suite::a_place_is_free_when_its_lease_ends(&*fixture()));
}

#[test]
fn lists_the_holders_of_a_subject() {
    let redis = require!(Redis::builder().fake_clock(START).start());
    let runtime = runtime();
    let fixture = at_our_time(&runtime, redis);
    runtime.block_on(suite::lists_the_holders_of_a_subject(&*fixture()));
}

/// The limit may have been lowered, or come with the id of a reservation that does not exist.
#[test]
fn a_limit_far_below_the_places_taken_costs_no_more_than_256_holders() {
    const HOLDERS: u64 = 2_000;
    let redis = require!(Redis::start());
    let runtime = runtime();
    let store = store(&runtime, &redis.url());
    let lease = Duration::from_mins(30);
    let [limit, lowered] =
        [2 * HOLDERS, 1].map(|places| Limit::concurrency(places, lease).unwrap());
    let ask = |verb, check: Check<'_>| {
        runtime.block_on(store.apply(verb, &Batch::from(check))).unwrap()[0]
    };
    let check = |limit, places| {
        Check::new(Key::new("jobs").unwrap(), limit, Cost::new(places).unwrap()).unwrap()
    };
    for id in 1..=HOLDERS {
        let place = Place { id: LeaseId::from(id), lease };
        assert!(ask(Verb::Acquire, check(&limit, 1 + id % 2).holding(place)).allowed, "{id}");
    }
    let made_up = Verb::Cancel(LeaseId::from(HOLDERS + 1));
    for (verb, mode) in [(made_up, CheckMode::Report), (Verb::Acquire, CheckMode::Required)] {
        redis.cli(&["CONFIG", "RESETSTAT"]);
        let denied = ask(verb, check(&lowered, 1).with_mode(mode));
        assert!(!denied.allowed && denied.retry_after == denied.reset_after, "{denied:?}");
        let commands = sorted_set_commands(&redis);
        assert!(commands < 256 + 20, "{commands} commands for {verb:?}");
    }
}

/// Number of commands on sorted sets since the last `CONFIG RESETSTAT`.
fn sorted_set_commands(redis: &Redis) -> u64 {
    let stats = redis.cli(&["INFO", "commandstats"]);
    let calls = stats.lines().filter(|line| line.starts_with("cmdstat_z"));
    calls.filter_map(|line| line.split(['=', ',']).nth(1)?.parse::<u64>().ok()).sum()
}

/// The work of Redis for a call does not grow with the number of holders.
#[test]
fn ten_thousand_holders_cost_no_more_than_ten() {
    let redis = require!(Redis::start());
    let runtime = runtime();
    let fixture = OnRedis::on_its_own_time(store(&runtime, &redis.url()), "");
    let mut last = 0;
    for holders in [10, 10_000] {
        redis.cli(&["CONFIG", "RESETSTAT"]);
        runtime.block_on(suite::thousands_of_holders_have_a_place_each(&*fixture, holders));
        let per_holder = sorted_set_commands(&redis) / holders;
        assert!(last == 0 || per_holder <= last, "{per_holder} commands instead of {last}");
        last = per_holder;
    }
    assert_eq!(redis.cli(&["DBSIZE"]), "0");
}

#[test]
fn two_clients_never_exceed_the_limit() {
    let redis = require!(Redis::start());
    let runtime = runtime();
    let stores = [store(&runtime, &redis.url()), store(&runtime, &redis.url())];
    clients_never_get_more_than_the_limit(&runtime, stores, "");
}

#[test]
fn skewed_client_clocks_do_not_matter() {
    let redis = require!(Redis::builder().fake_clock(START).start());
    let runtime = runtime();
    let client = |clock: u64| {
        let clock = ManualClock::new(Timestamp::from_micros(clock));
        store(&runtime, &redis.url()).with_clock(clock)
    };
    let hour = 3_600_000_000;
    let clients =
        [client(START), client(START - 5 * 60_000_000), client(START + 400 * 24 * hour), client(0)];
    let limits = [
        per_minute(8),
        Limit::sliding_window(8, Duration::from_secs(60)).unwrap(),
        Limit::calendar(8, Period::Day, "Asia/Tokyo").unwrap(),
        Limit::calendar(8, Period::Month, "America/New_York").unwrap(),
    ];
    runtime.block_on(async {
        for (i, limit) in limits.iter().enumerate() {
            for left in (0..8).rev() {
                let client = &clients[left as usize % clients.len()];
                let outcome = acquire(client, &format!("skew:{i}"), limit).await.unwrap()[0];
                assert_eq!(outcome.remaining, left, "{limit:?}");
                assert_eq!(outcome.at.as_micros(), START);
            }
            for client in &clients {
                assert!(!acquire(client, &format!("skew:{i}"), limit).await.unwrap()[0].allowed);
            }
        }
    });
}

#[test]
fn every_check_of_a_long_mixed_batch_gets_its_own_numbers() {
    let redis = require!(Redis::builder().fake_clock(START).start());
    let runtime = runtime();
    let store = store(&runtime, &redis.url());
    // A token a second: a fraction would take the whole batch to the slow path.
    let limits: Vec<Limit> = (10..35)
        .map(|n| {
            let seconds = Duration::from_secs(n);
            match n % 4 {
                0 => Limit::token_bucket(n, seconds),
                1 => Limit::sliding_window_counter(n, seconds),
                2 => Limit::fixed_window(n, seconds),
                _ => Limit::leaky_bucket(n, seconds),
            }
        })
        .collect::<Result<_, _>>()
        .unwrap();
    let names: Vec<String> = (0..limits.len()).map(|i| format!("mixed:{i}")).collect();
    let checks = || {
        names.iter().zip(&limits).zip(1..).map(|((name, limit), cost)| {
            let (key, cost) = (Key::new(name).unwrap(), Cost::new(1 + cost % 2).unwrap());
            Check::new(key, limit, cost).unwrap()
        })
    };
    for round in 1..=3 {
        let batch = Batch::new(checks()).unwrap();
        let outcomes = runtime.block_on(store.apply(Verb::Acquire, &batch)).unwrap();
        for (check, outcome) in checks().zip(&outcomes) {
            let left = check.limit().capacity() - round * check.cost().get();
            assert_eq!((outcome.allowed, outcome.remaining), (true, left), "{check:?}");
        }
    }
    // Seven fixed windows and six counters, each time; the slow path reads the others with HMGET,
    // too.
    let stats = redis.cli(&["INFO", "commandstats"]);
    assert!(stats.contains("cmdstat_hmget:calls=39,"), "{stats}");
}

#[test]
fn requests_of_the_same_microsecond_share_a_member_and_are_all_counted() {
    let redis = require!(Redis::builder().fake_clock(START).start());
    let runtime = runtime();
    let store = store(&runtime, &redis.url());
    let limit = Limit::sliding_window(100, Duration::from_secs(60)).unwrap();
    for (cost, left) in [(1, 99), (20, 79), (1, 78), (1, 77)] {
        let (key, cost) = (Key::new("log").unwrap(), Cost::new(cost).unwrap());
        let batch = Batch::from(Check::new(key, &limit, cost).unwrap());
        let outcome = runtime.block_on(store.apply(Verb::Acquire, &batch)).unwrap()[0];
        assert_eq!((outcome.allowed, outcome.remaining), (true, left));
    }
    // As in the engine's log; the other member is the sum.
    assert_eq!(redis.cli(&["ZRANGE", "log", "0", "-1"]), format!("#\n0000000:23:{START}"));
}

/// Numbers in Lua are doubles: the largest limit plus one rounds to the limit.
#[test]
fn the_largest_limit_is_not_exceeded() {
    let redis = require!(Redis::start());
    let runtime = runtime();
    let store = store(&runtime, &redis.url());
    let limit = Limit::calendar(Cost::MAX, Period::Month, "UTC").unwrap();
    let all = Check::new(Key::new("all").unwrap(), &limit, Cost::new(Cost::MAX).unwrap()).unwrap();
    runtime.block_on(async {
        assert!(store.apply(Verb::Acquire, &Batch::from(all)).await.unwrap()[0].allowed);
        for _ in 0..2 {
            let outcome = acquire(&store, "all", &limit).await.unwrap()[0];
            assert!(!outcome.allowed, "{outcome:?}");
        }
    });
    assert_eq!(redis.cli(&["HGET", "all", "count"]), Cost::MAX.to_string());
}
