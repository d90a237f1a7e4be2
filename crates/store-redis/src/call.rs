//! A verb and a batch as a script call, and its answer as outcomes.

mod answer;

use std::iter;

use headgate::{
    Check, CheckMode, Timestamp, Verb,
    algorithm::{Bucket, Calendar},
    limit::Parameters,
};
use redis::{Arg, Cmd};

use crate::Script;

pub(crate) use answer::{other_periods_wanted, outcomes};

/// Which script a call runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Usual,
    /// On a server without memory for new subjects.
    KnownSubjects,
}

/// A script call: what `EVALSHA` is sent. It is written straight into the command, since a text for
/// every word would cost more than sending them.
#[derive(Debug)]
pub struct Call<'a> {
    verb: &'static str,
    /// Whose lease it is, or when what is given back was taken.
    about: String,
    /// How long the lease lasts, and what the checks have to do with each other.
    terms: String,
    checks: &'a [Check<'a>],
    now: Timestamp,
}

impl<'a> Call<'a> {
    /// The words before the keys.
    const HEAD: usize = 3;

    /// The words after them.
    const TAIL: usize = 4;

    /// A number, four doubles, and a text that is mostly short.
    const BYTES_OF_A_CHECK: usize = 64;

    /// The call that does `verb` to `checks`. `now` need not be exact: it only
    /// chooses the calendar periods that Redis is told of.
    pub fn new(verb: Verb, checks: &'a [Check<'a>], now: Timestamp) -> Self {
        let (verb, id, lease) = match verb {
            Verb::Peek => ("peek", None, None),
            Verb::Acquire => ("acquire", None, None),
            Verb::Reserve { id, lease } => ("reserve", Some(id), Some(lease)),
            Verb::Commit(id) => ("commit", Some(id), None),
            Verb::Cancel(id) => ("cancel", Some(id), None),
            Verb::Refund => ("refund", None, None),
            Verb::Reset => ("reset", None, None),
        };
        let about = id.map_or_else(String::new, |id| id.to_string());
        let lease = lease.map_or_else(String::new, |lease| lease.as_micros().to_string());
        Self { verb, about, terms: lease + &modes(checks), checks, now }
    }

    /// The call that gives back what `checks` took, each at its time.
    pub(crate) fn undo(checks: &'a [Check<'a>], taken: &[Timestamp], now: Timestamp) -> Self {
        let taken: Vec<String> = taken.iter().map(|at| at.as_micros().to_string()).collect();
        Self { verb: "undo", about: taken.join(","), terms: String::new(), checks, now }
    }

    /// What the script reads as `KEYS`.
    pub fn keys(&self) -> Vec<Vec<u8>> {
        self.words().skip(Self::HEAD).take(self.checks.len()).collect()
    }

    /// What the script reads as `ARGV`.
    pub fn args(&self) -> Vec<Vec<u8>> {
        self.words().skip(Self::HEAD + self.checks.len()).collect()
    }

    fn words(&self) -> impl Iterator<Item = Vec<u8>> {
        let bytes = |word: Arg<&[u8]>| match word {
            Arg::Simple(bytes) => bytes.to_vec(),
            _ => Vec::new(),
        };
        self.by_name(Form::Usual).args_iter().map(bytes).collect::<Vec<_>>().into_iter()
    }

    /// The command that names the script; it fails on a server that has not loaded it.
    pub(crate) fn by_name(&self, form: Form) -> Cmd {
        self.command("EVALSHA", form.script().sha1())
    }

    /// The command that brings the script, and leaves it loaded.
    pub(crate) fn in_full(&self, form: Form) -> Cmd {
        self.command("EVAL", form.script().source())
    }

    fn command(&self, name: &str, script: &str) -> Cmd {
        const BYTES_OF_A_KEY: usize = 32;
        let checks = self.checks.len();
        let mut command = Cmd::with_capacity(
            Self::HEAD + checks + Self::TAIL,
            script.len() + (BYTES_OF_A_KEY + Self::BYTES_OF_A_CHECK) * (checks + 1),
        );
        command.arg(name).arg(script).arg(checks);
        let mut name = Vec::with_capacity(BYTES_OF_A_KEY);
        for check in self.checks {
            name.clear();
            check.key().parts().iter().for_each(|part| name.extend_from_slice(part.as_bytes()));
            command.arg(&name);
        }
        command.arg(self.verb).arg(&self.about).arg(&self.terms).arg(self.packed_checks());
        command
    }

    /// What `driver.lua` reads as `ARGV[4]`: one word, since Redis takes longer for each than for its bytes.
    fn packed_checks(&self) -> Vec<u8> {
        let mut packed = Vec::with_capacity(Self::BYTES_OF_A_CHECK * self.checks.len());
        for check in self.checks {
            pack(&mut packed, check, self.now);
        }
        packed
    }
}

impl Form {
    fn script(self) -> &'static Script {
        match self {
            Self::Usual => Script::get(),
            Self::KnownSubjects => Script::for_known_subjects(),
        }
    }
}

/// A letter for every check, after a semicolon; nothing where all share, as almost always.
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

/// What `driver.lua` says of `ARGV[4]`, for one check.
fn pack(packed: &mut Vec<u8>, check: &Check<'_>, now: Timestamp) {
    let (algorithm, first, second) = match check.limit().parameters() {
        Parameters::TokenBucket(b) => (1, interval(b), b.burst().into()),
        Parameters::LeakyBucket(b) => (2, interval(b), b.burst().into()),
        Parameters::FixedWindow(w) => (3, w.limit().into(), w.window()),
        Parameters::Calendar(c) => (4, c.limit(), 0),
        Parameters::SlidingWindowCounter(w) => (5, w.limit().into(), w.window()),
        Parameters::SlidingWindow(w) => (6, w.limit().into(), w.window()),
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
    }
    packed.push(0);
}

/// Writes numbers, which the formatter would take longer to do than the rest of the call.
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

/// In how many microseconds a token flows back; 0 if that is no whole number.
const fn interval(bucket: &Bucket) -> u64 {
    let (window, rate) = (bucket.window(), bucket.rate() as u64);
    if window.is_multiple_of(rate) { window / rate } else { 0 }
}

/// Exact: all numbers of a limit are at most 2^53.
#[expect(clippy::cast_precision_loss, reason = "there is none up to 2^53")]
const fn double(number: u64) -> f64 {
    number as f64
}

/// The period before that of `now`, it, and the one after, as their four bounds.
fn periods(calendar: &Calendar, now: Timestamp) -> [u64; 4] {
    let (start, end) = calendar.bounds(now);
    let (before, _) = calendar.bounds(Timestamp::from_micros(start.saturating_sub(1)));
    let (_, after) = calendar.bounds(Timestamp::from_micros(end));
    [before, start, end, after]
}
