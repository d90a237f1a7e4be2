//! The units are valid, and as confined as they claim.

use std::{fs, path::PathBuf, process::Command};

use headgate_testkit::{find_program, require};
use tempfile::TempDir;

use super::read;

/// Copies the units into a folder, with the binary under test.
fn units() -> (TempDir, [PathBuf; 3]) {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        ("headgate.service", "headgate.service"),
        ("headgate.socket", "headgate.socket"),
        ("headgate@.service", "headgate@a.service"),
    ];
    let files = files.map(|(name, instance)| {
        let unit = read(&format!("systemd/{name}"));
        let unit = unit.replace("/usr/bin/headgate", env!("CARGO_BIN_EXE_headgate"));
        let file = folder.path().join(instance);
        fs::write(&file, unit).unwrap();
        file
    });
    (folder, files)
}

#[test]
fn systemd_accepts_the_units() {
    let analyze = require!(find_program("systemd-analyze"));
    let (_folder, files) = units();
    let output = Command::new(analyze).arg("verify").args(&files).output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaints}");
    // It only warns about unknown settings.
    let ours = complaints.lines().find(|line| line.contains("headgate"));
    assert_eq!(ours, None, "{complaints}");
}

#[test]
fn the_services_are_confined() {
    let analyze = require!(find_program("systemd-analyze"));
    let (_folder, [service, _, instance]) = units();
    for unit in [service, instance] {
        // The threshold is in tenths: 0 is fully confined, 100 not at all.
        let output = Command::new(&analyze)
            .args(["security", "--offline=true", "--no-pager", "--threshold=20"])
            .arg(&unit)
            .output()
            .unwrap();
        let report = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{report}");
    }
}

#[test]
fn both_services_differ_only_in_how_they_get_their_ports() {
    let settings = |name: &str| {
        let unit = read(&format!("systemd/{name}"));
        let service = unit.split("[Service]\n").nth(1).unwrap();
        let service = service.split("\n[Install]").next().unwrap();
        let own = |line: &&str| !line.starts_with("Sockets=") && !line.contains("REUSE_PORT");
        service.lines().filter(own).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(settings("headgate.service"), settings("headgate@.service"));
}
