//! Encoding of a verb and a batch as a script call.

mod reply;

use std::iter;

use headgate::{
    Check, CheckMode, LeaseId, Place, Timestamp, Verb,
    algorithm::{Bucket, Calendar, bucket},
    limit::Parameters,
};
use redis::{Arg, Cmd};

use crate::script::Script;

pub(crate) use reply::{Acquired, acquired, needs_other_periods, outcomes};

/// The script that a call runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScriptKind {
    Full,
    /// Never adds a key: for a server that is out of memory.
    ExistingKeys,
}

/// Arguments of a script call. They are encoded straight into the command, without a `String` for
/// each.
#[derive(Debug)]
pub struct Call<'a> {
    verb: &'static str,
    /// Lease id, or a text for each check.
    subject: String,
    /// Length of the lease, and the mode of each check.
    terms: String,
    checks: &'a [Check<'a>],
    now: Timestamp,
}

impl<'a> Call<'a> {
    /// Number of arguments before the keys.
    const HEAD: usize = 3;

    /// Number of arguments after the keys.
    const TAIL: usize = 4;

    /// Estimated size of a packed check: a byte, three doubles and a short text.
    const BYTES_PER_CHECK: usize = 64;

    /// A call that applies `verb` to `checks`. `now` need not be exact: it only selects the
    /// calendar periods that are sent.
    pub fn new(verb: Verb, checks: &'a [Check<'a>], now: Timestamp) -> Self {
        let (verb, subject, lease) = match verb {
            Verb::Peek => ("peek", String::new(), None),
            Verb::Acquire => ("acquire", String::new(), None),
            Verb::Lease => ("lease", join(checks.iter().map(extra)), None),
            Verb::GiveBack => ("give_back", join(checks.iter().map(grant_end)), None),
            Verb::Reserve { id, lease } => ("reserve", id.to_string(), Some(lease)),
            Verb::Use { id, lease } => ("use", format!("{id}{}", spent(checks)), Some(lease)),
            Verb::Commit(id) => ("commit", format!("{id}{}", spent(checks)), None),
            Verb::Cancel(id) => ("cancel", id.to_string(), None),
            Verb::Refund => ("refund", join(checks.iter().map(taken_at)), None),
            Verb::Reset => ("reset", String::new(), None),
        };
        let lease = lease.map_or_else(String::new, |lease| lease.as_micros().to_string());
        Self { verb, subject, terms: lease + &modes(checks), checks, now }
    }

    /// How long Redis is busy with it, as a number of checks.
    pub(crate) fn weight(&self) -> usize {
        self.checks.len().max(1)
    }

    /// A call that returns what `checks` acquired.
    pub(crate) fn undo(checks: &'a [Check<'a>], taken: &[Acquired], now: Timestamp) -> Self {
        let subject = join(taken.iter().map(|Acquired { at, bucket, .. }| {
            let bucket::State { full_at, fraction, .. } = bucket.unwrap_or_default();
            format!("{}:{full_at}:{fraction}", at.as_micros())
        }));
        Self { verb: "undo", subject, terms: String::new(), checks, now }
    }

    /// `KEYS` of the script.
    pub fn keys(&self) -> Vec<Vec<u8>> {
        self.words().skip(Self::HEAD).take(self.checks.len()).collect()
    }

    /// `ARGV` of the script.
    pub fn args(&self) -> Vec<Vec<u8>> {
        self.words().skip(Self::HEAD + self.checks.len()).collect()
    }

    fn words(&self) -> impl Iterator<Item = Vec<u8>> {
        let bytes = |word: Arg<&[u8]>| match word {
            Arg::Simple(bytes) => bytes.to_vec(),
            _ => Vec::new(),
        };
        self.evalsha(ScriptKind::Full).args_iter().map(bytes).collect::<Vec<_>>().into_iter()
    }

    /// `EVALSHA`, which fails on a server that has not loaded the script.
    pub(crate) fn evalsha(&self, kind: ScriptKind) -> Cmd {
        self.command("EVALSHA", kind.script().sha1())
    }

    /// `EVAL`, which sends the script and loads it.
    pub(crate) fn eval(&self, kind: ScriptKind) -> Cmd {
        self.command("EVAL", kind.script().source())
    }

    fn command(&self, name: &str, script: &str) -> Cmd {
        const BYTES_PER_KEY: usize = 32;
        let checks = self.checks.len();
        let mut command = Cmd::with_capacity(
            Self::HEAD + checks + Self::TAIL,
            script.len() + (BYTES_PER_KEY + Self::BYTES_PER_CHECK) * (checks + 1),
        );
        command.arg(name).arg(script).arg(checks);
        let mut name = Vec::with_capacity(BYTES_PER_KEY);
        for check in self.checks {
            name.clear();
            check.key().parts().iter().for_each(|part| name.extend_from_slice(part.as_bytes()));
            command.arg(&name);
        }
        command.arg(self.verb).arg(&self.subject).arg(&self.terms).arg(self.packed_checks());
        command
    }

    /// `ARGV[4]` of `slow_path.lua`: a single argument, because Redis spends more time on arguments
    /// than on their bytes.
    fn packed_checks(&self) -> Vec<u8> {
        let mut packed = Vec::with_capacity(Self::BYTES_PER_CHECK * self.checks.len());
        for check in self.checks {
            pack(&mut packed, check, self.now);
        }
        packed
    }
}

impl ScriptKind {
    fn script(self) -> &'static Script {
        match self {
            Self::Full => Script::get(),
            Self::ExistingKeys => Script::for_existing_keys(),
        }
    }
}

fn join(texts: impl Iterator<Item = String>) -> String {
    texts.collect::<Vec<_>>().join(",")
}

/// Units to grant, and how long at most.
fn extra(check: &Check<'_>) -> String {
    check.extra().map_or_else(
        || "0:0".to_owned(),
        |extra| format!("{}:{}", extra.units(), extra.hold().as_micros()),
    )
}

/// Time at which the units of a refund were taken, if it is known.
fn taken_at(check: &Check<'_>) -> String {
    check.was_taken_at().map_or_else(|| "-".to_owned(), |at| at.as_micros().to_string())
}

/// A comma and the spent units for each check, with an exclamation mark for an overdraft and an
/// equals sign for a total; nothing in the usual case that no check says.
fn spent(checks: &[Check<'_>]) -> String {
    if checks.iter().all(|check| check.was_spent().is_none()) {
        return String::new();
    }
    let spent = |check: &Check<'_>| match check.was_spent() {
        None => ",-".to_owned(),
        Some(spent) => {
            let overdraft = if spent.is_overdraft() { "!" } else { "" };
            let total = if spent.is_total() { "=" } else { "" };
            format!(",{}{overdraft}{total}", spent.units())
        }
    };
    checks.iter().map(spent).collect()
}

/// The end of the grant from which units return; 0 is the end of none.
fn grant_end(check: &Check<'_>) -> String {
    check.grant_until().map_or(0, Timestamp::as_micros).to_string()
}

/// A letter for each check after a semicolon; empty in the usual case that all are required.
fn modes(checks: &[Check<'_>]) -> String {
    if checks.iter().all(|check| check.mode() == CheckMode::Required) {
        return String::new();
    }
    let letter = |check: &Check<'_>| match check.mode() {
        CheckMode::Required => 's',
        CheckMode::Probe => 'l',
        CheckMode::Optional => 'a',
        CheckMode::Independent => 'o',
        CheckMode::Report => 'g',
    };
    iter::once(';').chain(checks.iter().map(letter)).collect()
}

/// Packs one check as described in `slow_path.lua` under `ARGV[4]`.
fn pack(packed: &mut Vec<u8>, check: &Check<'_>, now: Timestamp) {
    let (algorithm, first, second) = match check.limit().parameters() {
        Parameters::TokenBucket(b) => (1, interval(b), b.burst().into()),
        Parameters::LeakyBucket(b) => (2, interval(b), b.burst().into()),
        Parameters::FixedWindow(w) => (3, w.limit().into(), w.window()),
        Parameters::Calendar(c) => (4, c.limit(), 0),
        Parameters::SlidingWindowCounter(w) => (5, w.limit().into(), w.window()),
        Parameters::SlidingWindow(w) => (6, w.limit().into(), w.window()),
        Parameters::Concurrency(c) => (7, c.limit().into(), c.window()),
    };
    packed.push(algorithm);
    for number in [check.cost().get(), first, second] {
        packed.extend_from_slice(&double(number).to_le_bytes());
    }
    match check.limit().parameters() {
        Parameters::TokenBucket(b) => list(packed, b'/', terms(b)),
        Parameters::LeakyBucket(b) => {
            packed.extend_from_slice(b"leaky ");
            list(packed, b'/', terms(b));
        }
        Parameters::Calendar(calendar) => list(packed, b',', periods(calendar, now)),
        Parameters::SlidingWindowCounter(w) => list(packed, b' ', [w.window()]),
        Parameters::FixedWindow(w) => list(packed, b' ', [w.window()]),
        Parameters::SlidingWindow(_) => {}
        Parameters::Concurrency(_) => {
            let Place { id, lease } = check.place().unwrap_or_else(|| nameless(check));
            packed.extend_from_slice(format!("{id}:{}", lease.as_micros()).as_bytes());
        }
    }
    packed.push(0);
}

/// The lease of an acquisition that names none: nobody can release it.
pub(crate) fn nameless(check: &Check<'_>) -> Place {
    Place { id: LeaseId::random(), lease: check.limit().window().unwrap_or_default() }
}

/// Writes numbers with `itoa`: `fmt` takes longer than the rest of the encoding.
fn list<const N: usize>(text: &mut Vec<u8>, between: u8, numbers: [u64; N]) {
    for (i, number) in numbers.into_iter().enumerate() {
        if i > 0 {
            text.push(between);
        }
        text.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    }
}

fn terms(bucket: &Bucket) -> [u64; 3] {
    [bucket.rate().into(), bucket.window(), bucket.burst().into()]
}

/// Microseconds until one token is refilled; 0 if that is not a whole number.
const fn interval(bucket: &Bucket) -> u64 {
    let (window, rate) = (bucket.window(), bucket.rate() as u64);
    if window.is_multiple_of(rate) { window / rate } else { 0 }
}

/// Exact: all numbers of a limit are at most 2^53.
#[expect(clippy::cast_precision_loss, reason = "exact up to 2^53")]
const fn double(number: u64) -> f64 {
    number as f64
}

/// The bounds of three periods: the previous one, that of `now`, and the next.
fn periods(calendar: &Calendar, now: Timestamp) -> [u64; 4] {
    let (start, end) = calendar.bounds(now);
    let (before, _) = calendar.bounds(Timestamp::from_micros(start.saturating_sub(1)));
    let (_, after) = calendar.bounds(Timestamp::from_micros(end));
    [before, start, end, after]
}
