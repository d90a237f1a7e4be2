//! Small fleets, in seconds: nothing over the limit, little less than it, and few calls.

use std::time::Duration;

use headgate::{Algorithm, Limit};
use headgate_simulation::{Faults, Scenario, run};

const HOLD: Duration = Duration::from_millis(200);

/// Ten instances and a limit that the busiest subjects exceed several times over.
fn crowded(algorithm: Algorithm) -> Scenario {
    let limit = Limit::new(algorithm, 400, Duration::from_secs(2)).expect("a limit");
    let scenario = Scenario::new(10, 1_000, 2_000.0, limit).leasing(10, HOLD);
    Scenario { length: Duration::from_secs(4), ..scenario }
}

/// Those with windows of any length whose units can be taken in advance.
fn algorithms() -> impl Iterator<Item = Algorithm> {
    let others = [Algorithm::Calendar, Algorithm::Concurrency];
    Algorithm::ALL.into_iter().filter(move |algorithm| !others.contains(algorithm))
}

#[test]
fn a_fleet_admits_nothing_over_the_limit_and_little_less() {
    for algorithm in algorithms() {
        let report = run(&crowded(algorithm));
        assert_eq!(report.over, 0, "{algorithm}: {report:?}");
        assert!(report.decisions - report.ideal > 10_000, "{algorithm}: {report:?}");
        assert!(report.under_percent() < 5.0, "{algorithm}: {report:?}");
        assert!(report.calls_per_decision() < 0.7, "{algorithm}: {report:?}");
    }
}

#[test]
fn a_fleet_with_lost_messages_partitions_and_kills_admits_nothing_over_the_limit() {
    for algorithm in algorithms() {
        let faults = Faults { lost_per_mille: 20, partition: true, kills_per_second: 20 };
        let report = run(&Scenario { faults, ..crowded(algorithm) });
        assert_eq!(report.over, 0, "{algorithm}: {report:?}");
        assert!(report.unanswered > 0, "{algorithm}: {report:?}");
    }
}

#[test]
fn a_run_is_reproducible() {
    let report = run(&crowded(Algorithm::TokenBucket));
    assert_eq!(run(&crowded(Algorithm::TokenBucket)), report);
    let other = run(&Scenario { seed: 2, ..crowded(Algorithm::TokenBucket) });
    assert_ne!(other, report);
}
