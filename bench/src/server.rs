//! Checks per second of whole servers over a socket, against handlers that do nothing.

pub(crate) mod candidate;
mod empty;
pub(crate) mod http;
pub(crate) mod load;
mod on_redis;
mod open_loop;

use headgate_testkit::CertificateAuthority;

use crate::{
    options::Options,
    report::{Ratio, Table, Verdict, median},
};

use self::{
    candidate::{Candidate, Place, Running, Surface},
    load::Figures,
};

pub(crate) use self::empty::{ARGUMENT, serve};

const FEWEST_OF_EMPTY: f64 = 0.9;
const FEWEST_OF_CEILING: f64 = 0.6;

/// The rounds of one candidate.
struct Series {
    candidate: Candidate,
    rounds: Vec<Figures>,
}

pub(crate) fn report(options: Options) {
    println!("## Servers: checks per second\n");
    for surface in [Surface::Rest, Surface::Grpc] {
        if let Err(reason) = measure(surface, Place::OwnCore, options) {
            println!("skipped {surface}: {reason}\n");
        }
    }
    if let Err(reason) = on_redis::report(options) {
        println!("skipped servers on Redis: {reason}\n");
    }
}

/// Measures ours and the empty handlers, both over TLS with the same certificate.
pub(crate) fn report_over_tls(options: Options) {
    println!("## Servers over TLS: checks per second\n");
    let folder = std::env::temp_dir().join(format!("headgate-bench-tls-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let issued = CertificateAuthority::new("bench").issue(&["127.0.0.1"]);
    let (cert, key) = issued.write(&folder, "server");
    let place = Place::OwnCoreOverTls { cert: &cert, key: &key };
    for surface in [Surface::Rest, Surface::Grpc] {
        if let Err(reason) = measure(surface, place, options) {
            println!("skipped {surface} over TLS: {reason}\n");
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
}

fn measure(surface: Surface, place: Place<'_>, options: Options) -> Result<(), String> {
    let tool = load::tool(surface)?;
    let mut all: Vec<Series> = Candidate::of(surface)
        .into_iter()
        .filter(|candidate| candidate.can_run_at(place))
        .map(|candidate| Series { candidate, rounds: Vec::new() })
        .collect();
    let running: Vec<Option<Running>> =
        all.iter().map(|series| series.candidate.start(place)).collect();
    for round in 0..options.rounds() {
        for i in 0..all.len() {
            // Rotate the order, so that no candidate always follows the same one.
            let at = (i + round) % all.len();
            if let Some(running) = &running[at] {
                all[at].rounds.push(load::run(running, options));
            }
        }
    }
    all.retain(|series| !series.rounds.is_empty());
    println!("{}", table(surface, &all));
    for verdict in verdicts(&all) {
        println!("{verdict}");
    }
    println!(
        "\n{} interleaved rounds by {tool}: {}; server and load on a core each.\n",
        options.rounds(),
        load::described(surface)
    );
    Ok(())
}

fn table(surface: Surface, all: &[Series]) -> Table {
    let name = surface.to_string();
    let header =
        [name.as_str(), "of the empty handler", "checks/s", "p50, us", "p99, us", "server CPU, us"];
    let mut table = Table::new(&header);
    for series in all {
        table.row([
            series.candidate.name().to_owned(),
            series.over(ceiling(all), |figures| figures.rate).to_string(),
            format!("{:.0}", series.median(|figures| figures.rate)),
            format!("{:.0}", series.median(|figures| figures.p50)),
            format!("{:.0}", series.median(|figures| figures.p99)),
            format!("{:.1}", series.median(|figures| figures.cpu)),
        ]);
    }
    table
}

/// Returns the fastest of the empty handlers.
fn ceiling(all: &[Series]) -> &Series {
    let empty = all.iter().filter(|series| series.candidate.is_empty());
    let rate = |series: &&Series| series.median(|figures| figures.rate);
    empty.max_by(|a, b| rate(a).total_cmp(&rate(b))).expect("an empty handler ran")
}

fn verdicts(all: &[Series]) -> Vec<Verdict> {
    let find = |wanted: fn(&Candidate) -> bool| all.iter().find(|series| wanted(&series.candidate));
    let Some(ours) = find(Candidate::is_ours) else {
        return Vec::new();
    };
    let share = ours.over(ceiling(all), |figures| figures.rate).median;
    let bound = "at least 0.9 of the empty handler";
    let mut verdicts = vec![Verdict::new(bound, share >= FEWEST_OF_EMPTY, format!("{share:.2}"))];
    if let Some(rival) = find(Candidate::is_rival) {
        let rate = ours.over(rival, |figures| figures.rate).median;
        let bound = format!("faster than {}", rival.candidate.name());
        verdicts.push(Verdict::new(bound, rate >= 1.0, format!("{rate:.2}x")));
        let tail = ours.over(rival, |figures| figures.p99).median;
        let bound = format!("p99 no worse than that of {}", rival.candidate.name());
        verdicts.push(Verdict::new(bound, tail <= 1.1, format!("{tail:.2}x of it")));
    }
    verdicts
}

// === impl Series ===

impl Series {
    fn values(&self, pick: impl Fn(&Figures) -> f64) -> Vec<f64> {
        self.rounds.iter().map(pick).collect()
    }

    fn median(&self, pick: impl Fn(&Figures) -> f64) -> f64 {
        median(&self.values(pick))
    }

    fn over(&self, other: &Self, pick: impl Fn(&Figures) -> f64 + Copy) -> Ratio {
        Ratio::per_round(&self.values(pick), &other.values(pick))
    }
}
