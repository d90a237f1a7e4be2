//! Throughput over a socket: requests per second of an axum handler that does nothing, bare and
//! behind each layer.

use super::Entrant;
use crate::{
    options::Options,
    report::{Ratio, Table, median},
    server::{
        candidate::{Candidate, Place, Running, Surface},
        load::{self, Figures},
    },
};

pub(super) fn report(options: Options) -> Result<(), String> {
    let tool = load::tool(Surface::Rest)?;
    let start = |entrant: Entrant| Candidate::Guarded(entrant).start(Place::OwnCore);
    let running: Option<Vec<Running>> = Entrant::ALL.into_iter().map(start).collect();
    let running = running.ok_or("a server did not start")?;
    let mut rounds = Entrant::ALL.map(|_| Vec::new());
    for round in 0..options.rounds() {
        for i in 0..running.len() {
            let at = (i + round) % running.len();
            rounds[at].push(load::run(&running[at], options));
        }
    }
    println!("{}", table(&rounds));
    println!(
        "{} interleaved rounds by {tool}: {}; server and load on a core each.\n",
        options.rounds(),
        load::described(Surface::Rest)
    );
    Ok(())
}

fn table(rounds: &[Vec<Figures>; Entrant::ALL.len()]) -> Table {
    let mut table = Table::new(&["axum", "of bare", "requests/s", "p99, us", "server CPU, us"]);
    let pick = |i: usize, pick: fn(&Figures) -> f64| rounds[i].iter().map(pick).collect::<Vec<_>>();
    for (i, entrant) in Entrant::ALL.into_iter().enumerate() {
        let rates = pick(i, |figures| figures.rate);
        table.row([
            entrant.name().to_owned(),
            Ratio::per_round(&rates, &pick(0, |figures| figures.rate)).to_string(),
            format!("{:.0}", median(&rates)),
            format!("{:.0}", median(&pick(i, |figures| figures.p99))),
            format!("{:.2}", median(&pick(i, |figures| figures.cpu))),
        ]);
    }
    table
}
