//! Speed in process: nanoseconds per decision, ours against the rivals'.

use std::{
    fmt,
    io::{IsTerminal, stderr},
};

use crate::{
    contestant::{Contestant, Entrant},
    lap,
    options::Options,
    report::{Ratio, Table, Verdict, median},
    shape::Shape,
    stream::Stream,
};

const THREADS: [usize; 2] = [1, 2];

/// The rounds of one shape at one number of threads.
#[derive(Debug)]
struct Series {
    shape: Shape,
    threads: usize,
    /// Nanoseconds per decision, by contestant and round.
    nanos: [Vec<f64>; Entrant::ALL.len()],
}

pub(crate) fn report(options: Options) {
    println!("## In process: nanoseconds per decision\n");
    let series = measure(options);
    println!("{}", table(&series));
    for verdict in verdicts(&series) {
        println!("{verdict}");
    }
    println!(
        "\n{} interleaved rounds; a ratio is the rival's time over ours, the median of the",
        options.rounds()
    );
    println!(
        "rounds' ratios (least..most); nanoseconds are medians. Token bucket, 100 per 10 min;"
    );
    println!(
        "burst 4,000,000 (all admitted), for \"90 % denied\" 10. Shapes of 1 million keys know"
    );
    println!("them all before, except \"all distinct\", which adds them to a new limiter.");
    println!("Limitador gets a part of each stream: 1/20, of \"all distinct\" 1/5.\n");
}

// === measuring ===

fn measure(options: Options) -> Vec<Series> {
    let mut all = Vec::new();
    let mut loaded: Vec<Box<dyn Contestant>> = Vec::new();
    for shape in Shape::ALL {
        if !shape.is_preloaded() {
            loaded.clear();
        } else if loaded.is_empty() {
            loaded.extend(Entrant::ALL.map(|entrant| preload(entrant, shape)));
        }
        all.extend(measure_shape(shape, &loaded, options));
    }
    all
}

/// Creates a limiter that knows all subjects of the shape.
fn preload(entrant: Entrant, shape: Shape) -> Box<dyn Contestant> {
    let limiter = entrant.build(shape.quota(), shape.subjects());
    let subjects_once = Stream::new(0..shape.subjects());
    let admitted = limiter.decide(subjects_once.all(), Shape::PRELOAD);
    assert_eq!(admitted, shape.subjects(), "{}: preloading {shape}", entrant.name());
    limiter
}

fn measure_shape(
    shape: Shape,
    loaded: &[Box<dyn Contestant>],
    options: Options,
) -> [Series; THREADS.len()] {
    let mut series = THREADS.map(|threads| Series::new(shape, threads));
    for round in 0..options.rounds() {
        let stream = shape.stream(round, options.thinning());
        for series in &mut series {
            progress(&format!("{series}, round {}", round + 1));
            for i in 0..Entrant::ALL.len() {
                // Rotate the order, so that no contestant always follows the same one.
                let at = (i + round) % Entrant::ALL.len();
                let limiter = loaded.get(at).map(|limiter| &**limiter);
                series.run(at, limiter, &stream, options);
            }
        }
    }
    progress("");
    series
}

fn progress(line: &str) {
    if stderr().is_terminal() {
        eprint!("\r\x1b[K{line}");
    }
}

impl Series {
    fn new(shape: Shape, threads: usize) -> Self {
        Self { shape, threads, nanos: Default::default() }
    }

    /// One round of one contestant.
    fn run(
        &mut self,
        at: usize,
        loaded: Option<&dyn Contestant>,
        stream: &Stream,
        options: Options,
    ) {
        let entrant = Entrant::ALL[at];
        let portion = self.shape.portion(entrant, stream, options.thinning());
        let keys = stream.keys(0..portion.decisions);
        let fresh = || entrant.build(self.shape.quota(), self.shape.subjects());
        let laps = (0..portion.passes).map(|_| {
            loaded.map_or_else(
                || lap::run(&*fresh(), &keys, self.threads),
                |limiter| lap::run(limiter, &keys, self.threads),
            )
        });
        let mut nanos = 0.0;
        for lap in laps {
            let right = (lap.admitted - self.shape.admitted()).abs() < 0.005;
            assert!(right, "{} admitted {} of {}", entrant.name(), lap.admitted, self.shape);
            nanos += lap.nanos;
        }
        self.nanos[at].push(nanos / portion.passes as f64);
    }

    fn median(&self, entrant: Entrant) -> f64 {
        median(&self.nanos[entrant as usize])
    }

    fn ratio(&self, rival: Entrant) -> Ratio {
        let [over, under] = [rival, Entrant::Ours].map(|entrant| &self.nanos[entrant as usize]);
        Ratio::per_round(over, under)
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.threads == 1 { "" } else { "s" };
        write!(f, "{}, {} thread{plural}", self.shape, self.threads)
    }
}

// === reporting ===

fn table(all: &[Series]) -> Table {
    let mut header = vec!["shape", "threads", "ours, ns"];
    for rival in Entrant::RIVALS {
        header.extend([rival.name(), "ns"]);
    }
    let mut table = Table::new(&header);
    for series in all {
        let mut row = vec![
            series.shape.to_string(),
            series.threads.to_string(),
            format!("{:.0}", series.median(Entrant::Ours)),
        ];
        for rival in Entrant::RIVALS {
            row.push(series.ratio(rival).to_string());
            row.push(format!("{:.0}", series.median(rival)));
        }
        table.row(row);
    }
    table
}

fn verdicts(all: &[Series]) -> [Verdict; 4] {
    let thousand = |shape| shape == Shape::ThousandKeys;
    [
        verdict(all, "no slower than governor at 1,000 keys", Entrant::Governor, 1.0, thousand),
        verdict(
            all,
            "at most half of governor's time at 1 million keys",
            Entrant::Governor,
            2.0,
            Shape::is_million,
        ),
        verdict(all, "2x faster than throttlecrab everywhere", Entrant::Throttlecrab, 2.0, |_| {
            true
        }),
        verdict(all, "20x faster than limitador everywhere", Entrant::Limitador, 20.0, |_| true),
    ]
}

/// Checks that `rival` takes at least `bound` times as long as ours wherever `applies`.
fn verdict(
    all: &[Series],
    claim: &str,
    rival: Entrant,
    bound: f64,
    applies: impl Fn(Shape) -> bool,
) -> Verdict {
    let mut missed = Vec::new();
    let mut least: Option<(f64, String)> = None;
    for series in all.iter().filter(|series| applies(series.shape)) {
        let ratio = series.ratio(rival).median;
        let figure = format!("{ratio:.2}x ({series})");
        if ratio < bound {
            missed.push(figure.clone());
        }
        if least.as_ref().is_none_or(|(least, _)| ratio < *least) {
            least = Some((ratio, figure));
        }
    }
    let holds = missed.is_empty();
    let figure = if holds {
        format!("at least {}", least.map_or_else(String::new, |(_, figure)| figure))
    } else {
        missed.join("; ")
    };
    Verdict::new(claim, holds, figure)
}
