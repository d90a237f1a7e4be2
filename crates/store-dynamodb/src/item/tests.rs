use std::time::Duration;

use headgate::{Algorithm, Cost, Key, LeaseId, Limit, Spent, Verb, algorithm::Period};

use super::*;

const NOW: Timestamp = Timestamp::from_micros(1_772_928_000_500_000);

/// Microseconds between the first and the last change of an item.
const MEANWHILE: u64 = 700_000;

/// The item of an account that took three of ten and reserved two.
fn item(algorithm: Algorithm) -> (Limit, Item) {
    let limit = match algorithm {
        Algorithm::Calendar => Limit::calendar(10, Period::Day, "Asia/Tokyo"),
        algorithm => Limit::new(algorithm, 10, Duration::from_secs(7)),
    };
    let limit = limit.unwrap();
    let mut account = Account::default();
    let reserve = Verb::Reserve { id: LeaseId::from(u64::MAX), lease: Duration::from_secs(3) };
    let check =
        |cost| Check::new(Key::new("k").unwrap(), &limit, Cost::new(cost).unwrap()).unwrap();
    for (verb, cost) in [(Verb::Acquire, 1), (Verb::Acquire, 2), (reserve, 2)] {
        account.perform(&check(cost), verb, NOW);
    }
    // Another one is settled, and the first is used; a bucket refills meanwhile.
    let id = LeaseId::from(1);
    let lease = Duration::from_secs(4);
    account.perform(&check(1), Verb::Reserve { id, lease }, NOW);
    account.perform(&check(1).spent(Spent::with_overdraft(3)), Verb::Commit(id), NOW);
    let used = Spent::with_overdraft(1);
    let now = NOW.plus(MEANWHILE);
    account.perform(&check(1).spent(used), Verb::Use { id: LeaseId::from(u64::MAX), lease }, now);
    account.perform(&check(1), Verb::Acquire, now);
    let item = Item::new(&check(1), account, now).unwrap();
    (limit, item)
}

fn state(item: &mut Attributes) -> &mut Attributes {
    let Some(AttributeValue::M(state)) = item.get_mut(STATE) else { panic!("no state") };
    state
}

#[test]
fn items_round_trip() {
    for algorithm in Algorithm::ALL {
        let (limit, item) = item(algorithm);
        let seen = ReadState::read(&item.attributes("k", 7), &limit, NOW).unwrap();
        assert_eq!(seen.account, item.account, "{algorithm}");
        assert_eq!(seen.at, NOW.plus(700_000));
        let expires_at = item.expires_at;
        assert_eq!(seen.expected, Expected::Unchanged { version: Some(7), expires_at });
    }
}

#[test]
fn invalid_items_are_rejected() {
    for algorithm in Algorithm::ALL {
        let (limit, item) = item(algorithm);
        let written = item.attributes("k", 7);
        let names: Vec<String> = state(&mut written.clone()).keys().cloned().collect();
        let spoilt = [
            AttributeValue::Null(true),
            AttributeValue::S("1".to_owned()),
            AttributeValue::N("-1".to_owned()),
            AttributeValue::N("1.5".to_owned()),
            number(u64::MAX),
            AttributeValue::B(vec![0xff; 31].into()),
            AttributeValue::B(vec![0xff; 96].into()),
        ];
        for name in names.iter().filter(|name| *name != EXPIRES_AT) {
            for value in &spoilt {
                let mut item = written.clone();
                state(&mut item).insert(name.clone(), value.clone());
                let read = ReadState::read(&item, &limit, NOW);
                assert!(
                    matches!(read, Err(StoreError::Corrupt(_))),
                    "{algorithm} {name} {value:?}"
                );
            }
        }
    }
}

#[test]
fn a_log_out_of_order_or_ahead_of_its_time_is_rejected() {
    let (limit, item) = item(Algorithm::SlidingWindow);
    let at = NOW.plus(MEANWHILE).as_micros();
    for times in [[at, at - 1], [at, at + 1]] {
        let entries = times.iter().flat_map(|at| [&at.to_be_bytes()[..], &[0, 0, 0, 1]].concat());
        let mut item = item.attributes("k", 7);
        let log = AttributeValue::B(entries.collect::<Vec<_>>().into());
        state(&mut item).insert("log".to_owned(), log);
        assert!(matches!(ReadState::read(&item, &limit, NOW), Err(StoreError::Corrupt(_))));
    }
}
