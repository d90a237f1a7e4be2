use std::{fs, os::unix::fs::symlink, path::Path, process::Command, sync::mpsc};

use headgate::{ManualClock, SystemClock};
use headgate_testkit::{CertificateAuthority, IssuedCertificate, Validity};
use tempfile::TempDir;
use tokio::sync::mpsc::unbounded_channel;

use super::*;
use crate::CertificateConfig;

const NAMES: [&str; 1] = ["localhost"];

fn config(folder: &Path) -> TlsConfig {
    let pair =
        CertificateConfig { cert_file: folder.join("tls.crt"), key_file: folder.join("tls.key") };
    TlsConfig { certificates: vec![pair], ..TlsConfig::default() }
}

fn open(folder: &Path) -> Tls {
    Tls::open(&config(folder), Arc::new(SystemClock::new())).unwrap()
}

/// Reads the files twice, as a watch does.
fn poll_twice(tls: &Tls) {
    let first = tls.poll(None);
    let _ = tls.poll(Some(&first));
}

#[test]
fn a_renewed_certificate_is_in_force_once_two_reads_are_the_same() {
    let (folder, ca) = (TempDir::new().unwrap(), CertificateAuthority::new("test"));
    ca.issue(&NAMES).write(folder.path(), "tls");
    let tls = open(folder.path());
    let before = tls.server_config();
    poll_twice(&tls);
    assert!(Arc::ptr_eq(&before, &tls.server_config()), "nothing has changed");

    ca.issue(&NAMES).write(folder.path(), "tls");
    let seen = tls.poll(None);
    assert!(Arc::ptr_eq(&before, &tls.server_config()), "it may be half written");
    let _ = tls.poll(Some(&seen));
    assert!(!Arc::ptr_eq(&before, &tls.server_config()));
    assert_eq!(tls.reload_failures(), 0);
}

#[test]
fn files_between_two_writes_are_no_failure() {
    let (folder, ca) = (TempDir::new().unwrap(), CertificateAuthority::new("test"));
    ca.issue(&NAMES).write(folder.path(), "tls");
    let tls = open(folder.path());
    let new = ca.issue(&NAMES);
    fs::write(folder.path().join("tls.crt"), &new.certificate).unwrap();
    let half = tls.poll(None);
    fs::write(folder.path().join("tls.key"), &new.key).unwrap();
    let whole = tls.poll(Some(&half));
    let _ = tls.poll(Some(&whole));
    assert_eq!((tls.reload_failures(), tls.warnings()), (0, vec![]));
}

#[test]
fn a_bad_renewal_keeps_the_previous_certificate_and_warns_once() {
    let (folder, ca) = (TempDir::new().unwrap(), CertificateAuthority::new("test"));
    let good = ca.issue(&NAMES);
    good.write(folder.path(), "tls");
    let tls = open(folder.path());
    let before = tls.server_config();
    let key = ca.issue(&NAMES).key;
    IssuedCertificate { certificate: good.certificate.clone(), key }.write(folder.path(), "tls");
    poll_twice(&tls);
    poll_twice(&tls);
    assert!(Arc::ptr_eq(&before, &tls.server_config()));
    assert_eq!(tls.reload_failures(), 1, "it is reported once");
    let warnings = tls.warnings();
    assert!(warnings[0].starts_with("failed to reload; the previous certificates"), "{warnings:?}");
    assert!(warnings[0].contains("tls.key is not the key of"), "{warnings:?}");

    fs::remove_file(folder.path().join("tls.key")).unwrap();
    poll_twice(&tls);
    assert_eq!(tls.reload_failures(), 2, "another failure");

    good.write(folder.path(), "tls");
    poll_twice(&tls);
    assert_eq!((tls.reload_failures(), tls.warnings()), (2, vec![]));
}

#[test]
fn a_swapped_symlink_is_noticed() {
    // As Kubernetes mounts a secret: files are links into a folder that is replaced as a whole.
    let (folder, ca) = (TempDir::new().unwrap(), CertificateAuthority::new("test"));
    let version = |name: &str| {
        let version = folder.path().join(name);
        fs::create_dir(&version).unwrap();
        ca.issue(&NAMES).write(&version, "tls");
        symlink(name, folder.path().join("data.new")).unwrap();
        fs::rename(folder.path().join("data.new"), folder.path().join("data")).unwrap();
    };
    version("v1");
    for file in ["tls.crt", "tls.key"] {
        symlink(format!("data/{file}"), folder.path().join(file)).unwrap();
    }
    let tls = open(folder.path());
    let before = tls.server_config();
    version("v2");
    poll_twice(&tls);
    assert!(!Arc::ptr_eq(&before, &tls.server_config()));
}

#[test]
fn reload_applies_a_change_at_once() {
    let (folder, ca) = (TempDir::new().unwrap(), CertificateAuthority::new("test"));
    ca.issue(&NAMES).write(folder.path(), "tls");
    let tls = open(folder.path());
    let before = tls.server_config();
    ca.issue(&NAMES).write(folder.path(), "tls");
    tls.reload().unwrap();
    assert!(!Arc::ptr_eq(&before, &tls.server_config()));

    ca.issue_valid(&NAMES, Validity::Expired).write(folder.path(), "tls");
    let problem = tls.reload().unwrap_err().to_string();
    assert!(problem.contains("expired at 2021-01-01"), "{problem}");
    assert_eq!(tls.reload_failures(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_watch_notices_a_renewed_certificate() {
    let (folder, ca) = (TempDir::new().unwrap(), CertificateAuthority::new("test"));
    ca.issue(&NAMES).write(folder.path(), "tls");
    let tls = Arc::new(open(folder.path()));
    let watching = tokio::spawn(Arc::clone(&tls).watch());
    let before = tls.server_config();
    ca.issue(&NAMES).write(folder.path(), "tls");
    let changed = async {
        while Arc::ptr_eq(&before, &tls.server_config()) {
            time::sleep(POLL_INTERVAL).await;
        }
    };
    time::timeout(Duration::from_secs(3600), changed).await.expect("the new certificate");
    watching.abort();
}

#[tokio::test(start_paused = true)]
async fn a_read_that_hangs_is_reported_and_certificates_are_still_renewed() {
    let (folder, ca) = (TempDir::new().unwrap(), CertificateAuthority::new("test"));
    ca.issue(&NAMES).write(folder.path(), "tls");
    let tls = Arc::new(open(folder.path()));
    let before = tls.server_config();
    let (held, released) = mpsc::channel::<()>();
    let (hangs, mut is_hanging) = unbounded_channel();
    let first = Arc::new(Mutex::new(Some(released)));
    let watching = tokio::spawn(Arc::clone(&tls).watch_by(move |tls, previous| {
        let first = first.lock().unwrap().take();
        if let Some(released) = first {
            hangs.send(()).unwrap();
            let _ = released.recv();
        }
        tls.poll(previous)
    }));

    is_hanging.recv().await.unwrap();
    // The clock stands still while a thread reads.
    for _ in 0..20 {
        if tls.reload_failures() == 0 {
            time::advance(POLL_INTERVAL).await;
        }
    }
    let warnings = tls.warnings();
    assert_eq!((tls.reload_failures(), warnings.len()), (1, 1));
    assert!(warnings[0].contains("has not returned for 10 seconds"), "{warnings:?}");
    tls.not_read(ReadFailure::Hangs);
    assert_eq!(tls.reload_failures(), 1, "it is reported once");

    time::resume();
    ca.issue(&NAMES).write(folder.path(), "tls");
    let renewed = async {
        while Arc::ptr_eq(&before, &tls.server_config()) || !tls.warnings().is_empty() {
            time::sleep(Duration::from_millis(5)).await;
        }
    };
    time::timeout(Duration::from_secs(120), renewed).await.expect("the new certificate");
    drop(held);
    watching.abort();
}

#[test]
fn a_pipe_is_reported_and_not_opened() {
    let (folder, ca) = (TempDir::new().unwrap(), CertificateAuthority::new("test"));
    ca.issue(&NAMES).write(folder.path(), "tls");
    let tls = open(folder.path());
    let before = tls.server_config();
    let file = folder.path().join("tls.crt");
    fs::remove_file(&file).unwrap();
    assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
    poll_twice(&tls);
    let warnings = tls.warnings();
    assert!(warnings[0].contains("not a regular file"), "{warnings:?}");
    fs::remove_file(&file).unwrap();
    ca.issue(&NAMES).write(folder.path(), "tls");
    poll_twice(&tls);
    assert!(!Arc::ptr_eq(&before, &tls.server_config()));
    assert_eq!((tls.reload_failures(), tls.warnings()), (1, vec![]));
}

#[test]
fn a_certificate_is_warned_about_in_the_last_tenth_of_its_lifetime() {
    let (folder, ca) = (TempDir::new().unwrap(), CertificateAuthority::new("test"));
    // From 2020-01-01 to 2049-01-01.
    ca.issue(&NAMES).write(folder.path(), "tls");
    let (start, end) = (1_577_836_800_u64, 2_493_072_000_u64);
    let tls_at = |seconds: u64| {
        let clock = ManualClock::new(headgate::Timestamp::from_micros(start * 1_000_000));
        let clock = Arc::new(clock);
        let tls = Tls::open(&config(folder.path()), Arc::<ManualClock>::clone(&clock)).unwrap();
        clock.advance(Duration::from_secs(seconds - start));
        tls
    };
    let tenth = (end - start) / 10;
    assert_eq!(tls_at(end - tenth).warnings(), Vec::<String>::new());
    let soon = tls_at(end - tenth + 1);
    assert!(soon.warnings()[0].ends_with("expires at 2049-01-01T00:00:00Z: renew it"));
    assert_eq!(soon.certificates()[0].seconds_left, tenth as i64 - 1);
    let late = tls_at(end + 5);
    assert!(late.warnings()[0].ends_with("expired at 2049-01-01T00:00:00Z: renew it"));
    assert_eq!(late.certificates()[0].seconds_left, -5);
}
