//! Golden vectors: recorded answers that no later change may alter.
//!
//! `golden/vectors.txt` is the output of [`render`]: the scripts below, run on the model. Stores
//! whose clock can be set [`replay`] it.
//!
//! The format of a line is `+pause verb cost: allowed remaining reset_after retry_after`, for a lease
//! ` grants units for time`, and for a reservation its standing, with all times in microseconds.

use std::{fmt::Write as _, rc::Rc, time::Duration};

use headgate::{
    Batch, Check, Cost, Extra, Grant, Key, LeaseId, Limit, LimitError, Outcome, Spent, Standing,
    Timestamp, Verb, algorithm::Period,
};

use crate::{Fixture, Model, fixture::next_scenario};

/// The vectors as committed.
pub const VECTORS: &str = include_str!("../golden/vectors.txt");

/// 2026-03-08T04:59:59.5Z: half a second before midnight in New York, on the day its clocks change.
const START: Timestamp = Timestamp::from_micros(1_772_945_999_500_000);

const SECOND: u64 = 1_000_000;

/// The steps of one subject: pause, verb, cost.
type Script = Vec<(u64, Verb, u64)>;

/// What earlier steps got: the last grant, and the time of the last acquisition.
#[derive(Clone, Copy, Default)]
struct Known {
    grant: Option<Grant>,
    taken_at: Option<Timestamp>,
}

/// The vectors that the model gives now.
pub fn render() -> String {
    let mut text = String::new();
    for (limit, script) in cases() {
        let (mut model, mut known) = (Model::default(), Known::default());
        let mut now = START;
        let _ = writeln!(text, "# {}", title(&limit));
        for (pause, verb, cost) in script {
            now = now.plus(pause);
            let check = check(&limit, "model", verb, cost, known);
            let outcome = model.apply(verb, &[check], &[now])[0];
            known.learn(verb, &outcome);
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
        let (mut now, mut known) = (START, Known::default());
        let _ = writeln!(text, "# {}", title(&limit));
        for (pause, verb, cost) in script {
            now = now.plus(pause);
            assert!(fixture.set_time(now), "golden vectors need a clock that can be set");
            let batch = Batch::from(check(&limit, &name, verb, cost, known));
            let answer = fixture.store().apply(verb, &batch).await;
            let outcome = answer.unwrap_or_else(|error| panic!("{}: {error}", title(&limit)))[0];
            known.learn(verb, &outcome);
            let _ = writeln!(text, "{}", line(pause, verb, cost, &outcome));
        }
    }
    for (played, written) in text.lines().zip(VECTORS.lines()) {
        assert_eq!(played, written);
    }
    assert_eq!(text.lines().count(), VECTORS.lines().count());
}

/// A check that leases up to three units more, returns units of the last grant or acquisition, or
/// settles a reservation, an even one with an overdraft.
fn check<'a>(limit: &'a Limit, name: &'a str, verb: Verb, cost: u64, known: Known) -> Check<'a> {
    let key = Key::new(name).unwrap_or_else(|error| panic!("{error}"));
    let units = Cost::new(cost.clamp(1, limit.capacity()));
    let units = units.unwrap_or_else(|error| panic!("{error}"));
    let check = Check::new(key, limit, units).unwrap_or_else(|error| panic!("{error}"));
    match (verb, known) {
        (Verb::GiveBack, Known { grant: Some(grant), .. }) => check.from_grant_until(grant.until),
        (Verb::Refund, Known { taken_at: Some(at), .. }) => check.taken_at(at),
        (Verb::Use { id, .. }, _) if id.get() >= TOTALS => check.spent(Spent::in_total(cost)),
        (Verb::Use { .. }, _) => check.spent(Spent::with_overdraft(cost)),
        (Verb::Commit(id), _) if id.get() >= SETTLED => match id.get() % 2 {
            0 => check.spent(Spent::with_overdraft(cost)),
            _ => check.spent(Spent::within_the_limit(cost)),
        },
        _ => check.with_extra(Extra::new(3, Duration::from_millis(400))),
    }
}

/// Reservations from this one on are settled, those before are committed whole.
const SETTLED: u64 = 10;

/// Reservations from this one on are used up to a total, those before for what was spent since.
const TOTALS: u64 = 20;

impl Known {
    fn learn(&mut self, verb: Verb, outcome: &Outcome) {
        self.grant = outcome.grant().or(self.grant);
        if verb == Verb::Acquire && outcome.allowed {
            self.taken_at = Some(outcome.at);
        }
    }
}

fn line(pause: u64, verb: Verb, cost: u64, outcome: &Outcome) -> String {
    let verb = match verb {
        Verb::Peek => "peek".to_owned(),
        Verb::Acquire => "acquire".to_owned(),
        Verb::Reserve { id, lease } => format!("reserve({}, {lease:?})", id.get()),
        Verb::Use { id, lease } => format!("use({}, {lease:?})", id.get()),
        Verb::Commit(id) => format!("commit({})", id.get()),
        Verb::Cancel(id) => format!("cancel({})", id.get()),
        Verb::Refund => "refund".to_owned(),
        Verb::Lease => "lease".to_owned(),
        Verb::GiveBack => "give_back".to_owned(),
        Verb::Reset => "reset".to_owned(),
    };
    let Outcome { allowed, remaining, reset_after, retry_after, .. } = outcome;
    let (reset, retry) = (reset_after.as_micros(), retry_after.as_micros());
    let granted = outcome.grant().map_or_else(String::new, |grant| {
        format!(" grants {} for {}", grant.units, grant.until.since(outcome.at))
    });
    let standing = outcome.reservation().map_or_else(String::new, |it| match it {
        Standing::Pending { held, expires_at } => {
            format!(" holds {held} for {}", expires_at.since(outcome.at))
        }
        Standing::Settled { spent, returned } => format!(" settled {spent} returned {returned}"),
        Standing::Owing { spent, owed } => format!(" settled {spent} owed {owed}"),
        Standing::InDebt { spent, debt } => format!(" settled {spent} debt {debt}"),
        _ => String::new(),
    });
    format!("+{pause} {verb} {cost}: {allowed} {remaining} {reset} {retry}{granted}{standing}")
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
    let settlements = limits.iter().map(|limit| (limit.clone(), settle_script(limit)));
    let totals = limits.iter().map(|limit| (limit.clone(), total_script(limit)));
    let counted = scripts.chain(leases).chain(settlements).chain(totals);
    let places = Limit::concurrency(5, Duration::from_mins(1));
    let places = places.unwrap_or_else(|error| panic!("{error}"));
    let scripts = [place_script(), script(&places), lease_script(&places), settle_script(&places)];
    counted.chain(scripts.map(|script| (places.clone(), script))).collect()
}

/// Take every place, renew, release, let a lease end, repeat a lost answer, release too late.
fn place_script() -> Script {
    let id = LeaseId::from;
    let seconds = Duration::from_secs;
    let take = |n: u64, lease: u64| Verb::Reserve { id: id(n), lease: seconds(lease) };
    let renew = |n: u64, lease: u64| Verb::Use { id: id(n), lease: seconds(lease) };
    vec![
        (0, take(1, 10), 1),
        (SECOND, take(2, 5), 3),
        (SECOND, take(3, 3_600), 1),
        (0, take(4, 10), 1),
        (0, Verb::Peek, 4),
        (SECOND, renew(2, 30), 1),
        (0, renew(4, 30), 1),
        (6 * SECOND + 999_999, Verb::Peek, 1),
        (1, take(4, 10), 1),
        (0, take(4, 20), 5),
        (0, renew(1, 10), 1),
        (0, Verb::Cancel(id(2)), 1),
        (0, Verb::Cancel(id(2)), 1),
        (0, Verb::Refund, 3),
        (SECOND, Verb::Acquire, 3),
        (0, take(5, 1), 1),
        (53 * SECOND, Verb::Peek, 3),
        (8 * SECOND, take(5, 1), 5),
    ]
}

/// Settle for less, for more, past the limit; use while it runs; refund in time and too late.
fn settle_script(limit: &Limit) -> Script {
    let most = limit.capacity();
    let (half, lease) = (most.div_ceil(2), Duration::from_secs(10));
    let id = |id: u64| LeaseId::from(SETTLED + id);
    let reserve = |n: u64| Verb::Reserve { id: id(n), lease };
    let charge = |n: u64| Verb::Use { id: id(n), lease };
    vec![
        (0, reserve(0), half),
        (SECOND, Verb::Acquire, 1),
        (SECOND, Verb::Commit(id(0)), 1),
        (0, Verb::Commit(id(0)), 1),
        (0, Verb::Commit(id(0)), 2),
        (0, reserve(1), 1),
        (1, Verb::Commit(id(1)), 2 * most),
        (60 * SECOND, reserve(2), 1),
        (0, Verb::Commit(id(2)), 2 * most + 1),
        (SECOND, Verb::Acquire, 1),
        (86_400 * 62 * SECOND, reserve(3), 1),
        (SECOND, charge(3), 1),
        (0, charge(3), most),
        (5 * SECOND, charge(3), 0),
        (9 * SECOND, Verb::Cancel(id(3)), 1),
        (86_400 * 62 * SECOND, Verb::Acquire, half),
        (SECOND / 4, Verb::Refund, half),
        (0, Verb::Acquire, half),
        (86_400 * 62 * SECOND, Verb::Refund, half),
    ]
}

/// Use up to a total, repeat it, send an older one late; settle for it, and use it once more.
fn total_script(limit: &Limit) -> Script {
    let most = limit.capacity();
    let (half, lease) = (most.div_ceil(2), Duration::from_secs(10));
    let id = LeaseId::from(TOTALS);
    let charge = Verb::Use { id, lease };
    vec![
        (0, Verb::Reserve { id, lease }, 1),
        (SECOND, charge, half),
        (1, charge, half),
        (SECOND, charge, half - 1),
        (SECOND, charge, 0),
        (0, charge, most + 1),
        (SECOND, charge, most + 1),
        (0, charge, half),
        (0, Verb::Acquire, 1),
        (SECOND, Verb::Commit(id), most + 1),
        (0, charge, most + 2),
        (60 * SECOND, charge, most + 1),
    ]
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
