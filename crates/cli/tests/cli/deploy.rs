//! Checks the files in `deploy/` against the binary: chart, compose file, dashboard, alerts
//! and units.

mod chart;
mod compose;
mod monitoring;
mod objects;
mod systemd;
mod yaml;

use std::{fs, path::PathBuf};

/// A file under `deploy/`.
fn path(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy")).join(name)
}

fn read(name: &str) -> String {
    let path = path(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
