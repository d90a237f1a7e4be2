//! Golden vectors: recorded answers that no later change may alter.
//!
//! `golden/vectors.txt` is the output of [`render`]: the scripts below, run on the model. Stores
//! whose clock can be set [`replay`] it.
//!
//! The format of a line is `+pause verb cost: allowed remaining reset_after retry_after`, and for a
//! lease ` grants units for time`, with all times in microseconds.

use std::{fmt::Write as _, rc::Rc, time::Duration};

use headgate::{
    Batch, Check, Cost, Extra, Grant, Key, LeaseId, Limit, LimitError, Outcome, Timestamp, Verb,
    algorithm::Period,
};

use crate::{Fixture, Model, fixture::next_scenario};

/// The vectors as committed.
pub const VECTORS: &str = include_str!("../golden/vectors.txt");

/// 2026-03-08T04:59:59.5Z: half a second before midnight in New York, on the day its clocks change.
const START: Timestamp = Timestamp::from_micros(1_772_945_999_500_000);

const SECOND: u64 = 1_000_000;

/// The steps of one subject: pause, verb, cost.
type Script = Vec<(u64, Verb, u64)>;

/// The vectors that the model gives now.
pub fn render() -> String {
    let mut text = String::new();
    for (limit, script) in cases() {
        let (mut model, mut grant) = (Model::default(), None);
        let mut now = START;
        let _ = writeln!(text, "# {}", title(&limit));
        for (pause, verb, cost) in script {
            now = now.plus(pause);
            let check = check(&limit, "model", verb, cost, grant);
            let outcome = model.apply(verb, &[check], &[now])[0];
            grant = outcome.grant.or(grant);
            let _ = writeln!(text, "{}", line(pause, verb, cost, &outcome));
        }
    }
    text
}

/// Replays the vectors on stores whose clock can be set; panics if an answer differs.
///
/// `fixture` creates the store for one limit: all start at the same time.
pub async fn replay(fixture: impl Fn() -> Rc<dyn Fixture>) {
    let mut text = String::new();
    for (limit, script) in cases() {
        let fixture = fixture();
        let name = format!("golden:{}", next_scenario());
        let (mut now, mut grant) = (START, None);
        let _ = writeln!(text, "# {}", title(&limit));
        for (pause, verb, cost) in script {
            now = now.plus(pause);
            assert!(fixture.set_time(now), "golden vectors need a clock that can be set");
            let batch = Batch::from(check(&limit, &name, verb, cost, grant));
            let answer = fixture.store().apply(verb, &batch).await;
            let outcome = answer.unwrap_or_else(|error| panic!("{}: {error}", title(&limit)))[0];
            grant = outcome.grant.or(grant);
            let _ = writeln!(text, "{}", line(pause, verb, cost, &outcome));
        }
    }
    for (played, written) in text.lines().zip(VECTORS.lines()) {
        assert_eq!(played, written);
    }
    assert_eq!(text.lines().count(), VECTORS.lines().count());
}

/// A check that leases up to three units more, or returns units of the last grant.
fn check<'a>(
    limit: &'a Limit,
    name: &'a str,
    verb: Verb,
    cost: u64,
    last: Option<Grant>,
) -> Check<'a> {
    let key = Key::new(name).unwrap_or_else(|error| panic!("{error}"));
    let cost = Cost::new(cost).unwrap_or_else(|error| panic!("{error}"));
    let check = Check::new(key, limit, cost).unwrap_or_else(|error| panic!("{error}"));
    match last {
        Some(grant) if verb == Verb::GiveBack => check.from_grant_until(grant.until),
        _ => check.with_extra(Extra::new(3, Duration::from_millis(400))),
    }
}

fn line(pause: u64, verb: Verb, cost: u64, outcome: &Outcome) -> String {
    let verb = match verb {
        Verb::Peek => "peek".to_owned(),
        Verb::Acquire => "acquire".to_owned(),
        Verb::Reserve { id, lease } => format!("reserve({}, {lease:?})", id.get()),
        Verb::Commit(id) => format!("commit({})", id.get()),
        Verb::Cancel(id) => format!("cancel({})", id.get()),
        Verb::Refund => "refund".to_owned(),
        Verb::Lease => "lease".to_owned(),
        Verb::GiveBack => "give_back".to_owned(),
        Verb::Reset => "reset".to_owned(),
    };
    let Outcome { allowed, remaining, reset_after, retry_after, .. } = outcome;
    let (reset, retry) = (reset_after.as_micros(), retry_after.as_micros());
    let granted = outcome.grant.map_or_else(String::new, |grant| {
        format!(" grants {} for {}", grant.units, grant.until.since(outcome.at))
    });
    format!("+{pause} {verb} {cost}: {allowed} {remaining} {reset} {retry}{granted}")
}

fn title(limit: &Limit) -> String {
    let window =
        limit.window().map_or_else(|| "calendar".to_owned(), |window| format!("{window:?}"));
    format!("{} {} per {window}", limit.algorithm(), limit.capacity())
}

fn cases() -> Vec<(Limit, Script)> {
    let limits = || -> Result<Vec<Limit>, LimitError> {
        let minute = Duration::from_mins(1);
        Ok(vec![
            Limit::token_bucket(100, minute)?,
            Limit::token_bucket(7, minute)?.with_burst(3)?,
            Limit::token_bucket(3_000_000, Duration::from_secs(1))?,
            Limit::token_bucket(999_983, Duration::from_hours(24))?,
            Limit::leaky_bucket(7, minute)?,
            Limit::sliding_window(5, minute)?,
            Limit::sliding_window_counter(5, minute)?,
            Limit::sliding_window_counter(999_983, Duration::from_hours(24))?,
            Limit::fixed_window(5, minute)?,
            Limit::calendar(5, Period::Day, "America/New_York")?,
            Limit::calendar(5, Period::Month, "Asia/Tokyo")?,
        ])
    };
    let limits = limits().unwrap_or_else(|error| panic!("{error}"));
    let scripts = limits.iter().map(|limit| (limit.clone(), script(limit)));
    let leases = limits.iter().map(|limit| (limit.clone(), lease_script(limit)));
    scripts.chain(leases).collect()
}

/// Lease, return some, let the rest end, lease what is left, return too much and too late, reset.
fn lease_script(limit: &Limit) -> Script {
    let most = limit.capacity();
    vec![
        (0, Verb::Lease, 1),
        (0, Verb::Peek, most),
        (100_000, Verb::GiveBack, 1),
        (0, Verb::Acquire, 1),
        (0, Verb::Acquire, most),
        (400_000, Verb::Peek, most),
        (0, Verb::GiveBack, 1),
        (SECOND, Verb::Lease, 1),
        (50_000, Verb::Lease, 1),
        (50_000, Verb::GiveBack, most),
        (200_000, Verb::Lease, most.min(2)),
        (0, Verb::GiveBack, 1),
        (100_000, Verb::Reset, 1),
        (0, Verb::Acquire, most),
        (0, Verb::Lease, 1),
        (90_000 * SECOND, Verb::Lease, most),
    ]
}

/// Use it up, wait, reserve, let a lease run out, refund, reset.
fn script(limit: &Limit) -> Script {
    let most = limit.capacity();
    let (first, second) = (LeaseId::from(1), LeaseId::from(2));
    let lease = Duration::from_secs(10);
    vec![
        (0, Verb::Peek, 1),
        (0, Verb::Acquire, 1),
        (SECOND, Verb::Acquire, most - 1),
        (1, Verb::Acquire, 1),
        (0, Verb::Acquire, most),
        (7 * SECOND + 1, Verb::Acquire, 1),
        (SECOND, Verb::Acquire, 2),
        (59 * SECOND, Verb::Reserve { id: first, lease }, 2),
        (SECOND, Verb::Acquire, 1),
        (SECOND, Verb::Cancel(first), 2),
        (0, Verb::Cancel(first), 2),
        (SECOND, Verb::Reserve { id: second, lease }, most.min(3)),
        (0, Verb::Acquire, most),
        (10 * SECOND, Verb::Peek, most),
        (SECOND, Verb::Commit(second), 1),
        (0, Verb::Reserve { id: second, lease }, 1),
        (SECOND, Verb::Commit(second), 1),
        (SECOND, Verb::Refund, 1),
        (3600 * SECOND, Verb::Acquire, most),
        (60 * SECOND, Verb::Acquire, 1),
        (86_400 * SECOND, Verb::Acquire, most),
        (0, Verb::Reset, 1),
        (0, Verb::Acquire, most),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// To change the vectors on purpose: `UPDATE_GOLDEN=1 cargo test -p
    /// headgate-store-conformance`.
    #[test]
    fn the_arithmetic_still_gives_the_golden_vectors() {
        let rendered = render();
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/vectors.txt");
            std::fs::write(path, &rendered).unwrap();
            return;
        }
        for (now, then) in rendered.lines().zip(VECTORS.lines()) {
            assert_eq!(now, then);
        }
        assert_eq!(rendered, VECTORS);
    }
}
