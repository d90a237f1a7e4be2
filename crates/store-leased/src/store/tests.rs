use headgate::{Cost, Limit, ManualClock, Timestamp};
use headgate_store_memory::MemoryStore;

use super::*;

const NOW: u64 = 5_000_000;
const MINUTE: Duration = Duration::from_mins(1);

/// Between the look at a denial and its repetition, another thread may learn of an admission that
/// the store decided before the denial.
#[test]
fn a_denial_that_is_gone_is_not_repeated_as_an_admission() {
    let clock = ManualClock::new(Timestamp::from_micros(NOW));
    let store = LeasedStore::with_clock(MemoryStore::default(), clock);
    let limit = Limit::fixed_window(50, MINUTE).unwrap();
    let batch = Batch::from(Check::new(Key::new("u").unwrap(), &limit, Cost::ONE).unwrap());
    let learn = |outcome: Outcome| {
        let times = CallTimes { sent: NOW, arrived: NOW };
        store.learn(&batch, &[outcome].into_iter().collect(), times);
    };
    let at = Timestamp::from_micros(NOW);
    learn(Outcome::denial(50, 0, MINUTE, MINUTE, at));
    assert!(store.denial(&batch, NOW).is_some());
    learn(Outcome::admission(50, 3, MINUTE, at));
    assert!(store.denial(&batch, NOW).is_none());
}
