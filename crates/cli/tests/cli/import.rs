//! `headgate import envoy|limitador`

mod envoy;
mod limitador;

use std::{fs, process::Output};

use tempfile::TempDir;

use crate::harness::headgate;

fn folder(name: &str, yaml: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(name), yaml).unwrap();
    folder
}

fn run(folder: &TempDir, arguments: &[&str]) -> Output {
    let arguments = [&["import"], arguments].concat();
    headgate(&arguments, &[]).current_dir(folder).output().unwrap()
}
