//! Small fleets, in seconds: nothing over the limit, little less than it, and few calls.

use std::time::Duration;

use headgate::{Algorithm, Limit};
use headgate_simulation::{Faults, Report, Scenario, run};

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

/// One instance, and one subject with 100,000 decisions a second: ten calls a second, as a grant is
/// renewed each half of the hold, and some more in aligned windows, where grants end early.
#[test]
fn a_hot_subject_needs_few_calls_and_hardly_a_request_waits() {
    // A sliding window log is never that wide.
    for algorithm in algorithms().filter(|it| *it != Algorithm::SlidingWindow) {
        let limit = Limit::new(algorithm, 1_000_000, Duration::from_secs(2)).expect("a limit");
        let hot = Scenario::new(1, 1, 100_000.0, limit).leasing(10, HOLD);
        let after =
            |seconds| run(&Scenario { length: Duration::from_secs(seconds), ..hot.clone() });
        let (first, third) = (after(1), after(3));
        assert_eq!((third.over, third.unanswered), (0, 0), "{algorithm}: {third:?}");
        assert!(third.under_percent() < 0.1, "{algorithm}: {third:?}");
        // Paces are learned by doubling them.
        assert!(first.calls() <= 30, "{algorithm}: {first:?}");
        let since = |count: fn(&Report) -> u64| count(&third) - count(&first);
        assert!(since(Report::calls) <= 2 * 15, "{algorithm}: {first:?}, {third:?}");
        let delayed = since(|report| report.delayed) as f64;
        let share = delayed / since(|report| report.decisions) as f64;
        assert!(share < 0.0025, "{algorithm}: {first:?}, {third:?}");
    }
}

#[test]
fn a_run_is_reproducible() {
    let report = run(&crowded(Algorithm::TokenBucket));
    assert_eq!(run(&crowded(Algorithm::TokenBucket)), report);
    let other = run(&Scenario { seed: 2, ..crowded(Algorithm::TokenBucket) });
    assert_ne!(other, report);
}
