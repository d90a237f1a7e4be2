//! A verb and a batch as a script call, and its answer as outcomes.

mod answer;

use std::iter;

use headgate::{Check, Stake, Timestamp, Verb, algorithm::Calendar, limit::Rule};
use redis::Cmd;

use crate::Script;

pub(crate) use answer::{other_periods_wanted, outcomes};

/// A script call: what `EVALSHA` is sent.
#[derive(Debug)]
pub struct Call {
    keys: Vec<String>,
    args: Vec<String>,
}

impl Call {
    /// The call that does `verb` to `checks`. `now` need not be exact: it only
    /// chooses the calendar periods that Redis is told of.
    pub fn new(verb: Verb, checks: &[Check<'_>], now: Timestamp) -> Self {
        let (name, id, lease) = match verb {
            Verb::Peek => ("peek", None, None),
            Verb::Acquire => ("acquire", None, None),
            Verb::Reserve { id, lease } => ("reserve", Some(id), Some(lease)),
            Verb::Commit(id) => ("commit", Some(id), None),
            Verb::Cancel(id) => ("cancel", Some(id), None),
            Verb::Refund => ("refund", None, None),
            Verb::Reset => ("reset", None, None),
        };
        let id = id.map_or_else(String::new, |id| id.to_string());
        let lease = lease.map_or_else(String::new, |lease| lease.as_micros().to_string());
        Self::of([name.to_owned(), id, lease + &stakes(checks)], checks, now)
    }

    /// The call that gives back what `checks` took, each at its time.
    pub(crate) fn undo(checks: &[Check<'_>], taken: &[Timestamp], now: Timestamp) -> Self {
        let taken: Vec<String> = taken.iter().map(|at| at.as_micros().to_string()).collect();
        Self::of(["undo".to_owned(), taken.join(","), String::new()], checks, now)
    }

    fn of(head: [String; 3], checks: &[Check<'_>], now: Timestamp) -> Self {
        let mut args = Vec::with_capacity(3 + 5 * checks.len());
        args.extend(head);
        for check in checks {
            args.push(check.limit().algorithm().name().to_owned());
            args.push(check.cost().to_string());
            args.extend(parameters(check.limit().rule(), now));
        }
        Self { keys: checks.iter().map(|check| check.key().to_string()).collect(), args }
    }

    /// What the script reads as `KEYS`.
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// What the script reads as `ARGV`.
    pub fn args(&self) -> &[String] {
        &self.args
    }

    /// The command that names the script; it fails on a server that has not loaded it.
    pub(crate) fn by_name(&self) -> Cmd {
        self.command("EVALSHA", Script::get().sha1())
    }

    /// The command that brings the script, and leaves it loaded.
    pub(crate) fn in_full(&self) -> Cmd {
        self.command("EVAL", Script::get().source())
    }

    fn command(&self, name: &str, script: &str) -> Cmd {
        let mut command = redis::cmd(name);
        command.arg(script).arg(self.keys.len()).arg(&self.keys).arg(&self.args);
        command
    }
}

/// A letter for every check, after a semicolon; nothing where all share, as almost always.
fn stakes(checks: &[Check<'_>]) -> String {
    if checks.iter().all(|check| check.stake() == Stake::Shared) {
        return String::new();
    }
    let letter = |check: &Check<'_>| match check.stake() {
        Stake::Shared => 's',
        Stake::Look => 'l',
        Stake::Aside => 'a',
        Stake::Alone => 'o',
        Stake::Glance => 'g',
    };
    iter::once(';').chain(checks.iter().map(letter)).collect()
}

/// The three words that each algorithm's script explains.
fn parameters(rule: &Rule, now: Timestamp) -> [String; 3] {
    let window = |limit: u32, window: u64| [limit.to_string(), window.to_string(), String::new()];
    match rule {
        Rule::TokenBucket(bucket) | Rule::LeakyBucket(bucket) => {
            [bucket.rate().to_string(), bucket.window().to_string(), bucket.burst().to_string()]
        }
        Rule::SlidingWindow(w) => window(w.limit(), w.window()),
        Rule::SlidingWindowCounter(w) => window(w.limit(), w.window()),
        Rule::FixedWindow(w) => window(w.limit(), w.window()),
        Rule::Calendar(c) => [c.limit().to_string(), periods(c, now), String::new()],
    }
}

/// The period before that of `now`, it, and the one after, as their four bounds.
fn periods(calendar: &Calendar, now: Timestamp) -> String {
    let (start, end) = calendar.bounds(now);
    let (before, _) = calendar.bounds(Timestamp::from_micros(start.saturating_sub(1)));
    let (_, after) = calendar.bounds(Timestamp::from_micros(end));
    format!("{before},{start},{end},{after}")
}
