//! Plots what each algorithm admits of the same traffic, for `docs/algorithms.md`.
//!
//! ```sh
//! cargo run -p headgate-store-memory --example plot
//! ```

#![expect(clippy::print_stdout, reason = "the summary is for whoever runs it")]

mod chart;
mod run;

use std::{error::Error, fmt::Write as _, fs};

use headgate::{Algorithm, Limit};

use crate::run::{LIMIT, Run, WINDOW, by_phase};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/algorithms");

/// Burst of the plotted leaky bucket: with its whole limit it would equal the token bucket.
const LEAKY_BURST: u64 = 10;

fn main() -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(FOLDER)?;
    let runs = runs()?;
    for run in &runs {
        fs::write(format!("{FOLDER}/{}.svg", run.algorithm), chart::draw(run))?;
    }
    print!("{}", summary(&runs));
    Ok(())
}

fn runs() -> Result<[Run; 5], Box<dyn Error>> {
    let full = |algorithm| Limit::new(algorithm, LIMIT, WINDOW);
    let leaky = Limit::leaky_bucket(LIMIT, WINDOW)?.with_burst(LEAKY_BURST)?;
    Ok([
        Run::of(&full(Algorithm::TokenBucket)?)?,
        Run::of(&full(Algorithm::SlidingWindow)?)?,
        Run::of(&full(Algorithm::SlidingWindowCounter)?)?,
        Run::of(&full(Algorithm::FixedWindow)?)?,
        Run::of(&leaky)?,
    ])
}

/// The table of `docs/algorithms.md`.
fn summary(runs: &[Run; 5]) -> String {
    let [before, after, stream] = by_phase(&runs[0].asked);
    let mut table = format!(
        "| | of {before} before the boundary | of {after} after it | of the stream's {stream} \
         | most in any {} s |\n|---|---|---|---|---|\n",
        WINDOW.as_secs()
    );
    for run in runs {
        let [before, after, stream] = by_phase(&run.admitted);
        let name = match run.burst {
            Some(burst) => format!("`{}`, burst {burst}", run.algorithm),
            None => format!("`{}`", run.algorithm),
        };
        let _ = writeln!(table, "| {name} | {before} | {after} | {stream} | {} |", run.peak());
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_plots_are_up_to_date() {
        let mut drawn: Vec<_> = runs()
            .unwrap()
            .iter()
            .map(|run| (format!("{}.svg", run.algorithm), chart::draw(run)))
            .collect();
        let read = |entry: fs::DirEntry| {
            (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap())
        };
        let mut committed: Vec<_> =
            fs::read_dir(FOLDER).unwrap().map(|entry| read(entry.unwrap())).collect();
        drawn.sort();
        committed.sort();
        assert!(
            drawn == committed,
            "run `cargo run -p headgate-store-memory --example plot` and commit docs/algorithms"
        );
    }

    #[test]
    fn the_table_in_the_docs_matches_the_plots() {
        let page = fs::read_to_string(format!("{FOLDER}.md")).unwrap();
        let table = summary(&runs().unwrap());
        assert!(page.contains(&table), "docs/algorithms.md lacks\n{table}");
    }

    #[test]
    fn a_leaky_bucket_of_the_same_burst_is_a_token_bucket() {
        let of = |algorithm| {
            let limit = Limit::new(algorithm, LIMIT, WINDOW).unwrap();
            Run::of(&limit).unwrap().admitted
        };
        assert_eq!(of(Algorithm::LeakyBucket), of(Algorithm::TokenBucket));
    }

    #[test]
    fn the_log_never_admits_more_than_the_limit_in_any_window() {
        let [_, log, ..] = runs().unwrap();
        assert_eq!(log.peak() as u64, LIMIT);
    }
}
