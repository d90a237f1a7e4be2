use std::{fs, path::Path};

use headgate::{ManualClock, SystemClock};
use headgate_testkit::{CertificateAuthority, IssuedCertificate, Validity};
use tempfile::TempDir;

use super::*;
use crate::CertificateConfig;

const NAMES: [&str; 2] = ["localhost", "127.0.0.1"];

/// The configuration of a pair in this folder.
fn config(folder: &Path, pair: &IssuedCertificate) -> TlsConfig {
    let (cert_file, key_file) = pair.write(folder, "server");
    TlsConfig {
        certificates: vec![CertificateConfig { cert_file, key_file }],
        ..TlsConfig::default()
    }
}

fn problem(config: &TlsConfig) -> String {
    LoadedTls::read(config, &SystemClock::new()).err().expect("a problem").to_string()
}

#[test]
fn mistakes_name_the_key_the_file_and_what_to_do() {
    let (folder, ca) = (TempDir::new().unwrap(), CertificateAuthority::new("test"));
    let pair = ca.issue(&NAMES);
    let other = ca.issue(&NAMES);
    let good = config(folder.path(), &pair);
    assert!(LoadedTls::read(&good, &SystemClock::new()).is_ok());

    let write = |certificate: &str, key: &str| {
        let pair = IssuedCertificate { certificate: certificate.into(), key: key.into() };
        config(folder.path(), &pair)
    };
    let expired = ca.issue_valid(&NAMES, Validity::Expired);
    let future = ca.issue_valid(&NAMES, Validity::Future);
    let garbage = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for (certificate, key, expected) in [
        (
            &*pair.certificate,
            &*other.key,
            ["key_file", "server.key is not the key of", "server.crt"],
        ),
        ("", &pair.key, ["cert_file", "server.crt has no certificate in PEM", "BEGIN"]),
        (&pair.certificate, "", ["key_file", "server.key has no private key in PEM", "BEGIN"]),
        (garbage, &pair.key, ["cert_file", "server.crt", "X.509"]),
        (&expired.certificate, &expired.key, ["_file", "expired at 2021-01-01T00:00:00Z", "renew"]),
        (&future.certificate, &future.key, ["_file", "not valid before 2048-01-01", "clock"]),
    ] {
        let problem = problem(&write(certificate, key));
        assert!(problem.starts_with("certificates[0]."), "{problem}");
        for part in expected {
            assert!(problem.contains(part), "{problem}: {part}");
        }
    }
}

#[test]
fn unreadable_and_large_files_are_reported() {
    let (folder, ca) = (TempDir::new().unwrap(), CertificateAuthority::new("test"));
    let mut config = config(folder.path(), &ca.issue(&NAMES));
    config.client_ca_file = Some(folder.path().join("none.crt"));
    let missing = problem(&config);
    assert!(missing.starts_with("client_ca_file: "), "{missing}");
    assert!(missing.contains("none.crt cannot be read: No such file"), "{missing}");

    let large = folder.path().join("large.crt");
    fs::write(&large, vec![b'x'; 1024 * 1024 + 1]).unwrap();
    config.client_ca_file = Some(large);
    assert!(problem(&config).contains("is larger than 1 MiB"), "{}", problem(&config));

    let empty = folder.path().join("empty.crt");
    fs::write(&empty, "").unwrap();
    config.client_ca_file = Some(empty);
    assert!(problem(&config).contains("has no certificate in PEM"), "{}", problem(&config));
}

#[test]
fn a_certificate_that_has_just_been_signed_is_accepted() {
    let (folder, ca) = (TempDir::new().unwrap(), CertificateAuthority::new("test"));
    let config = config(folder.path(), &ca.issue(&NAMES));
    // Valid from 2020-01-01.
    let at = |seconds: u64| ManualClock::new(headgate::Timestamp::from_micros(seconds * 1_000_000));
    assert!(LoadedTls::read(&config, &at(1_577_836_800 - 299)).is_ok());
    assert!(LoadedTls::read(&config, &at(1_577_836_800 - 301)).is_err());
}

#[test]
fn contradictions_are_found_without_reading_files() {
    let problems = |config: &TlsConfig| -> String {
        let found: Vec<_> = config.contradictions().iter().map(ToString::to_string).collect();
        found.join("; ")
    };
    assert_eq!(problems(&TlsConfig::default()), "");
    let ca = TlsConfig { client_ca_file: Some("ca.crt".into()), ..TlsConfig::default() };
    assert!(problems(&ca).contains("client_ca_file: requires certificates"), "{}", problems(&ca));
    let required = TlsConfig {
        client_certificates: Some(ClientCertificates::Required),
        ..TlsConfig::default()
    };
    let found = problems(&required);
    assert!(found.contains("client_certificates: requires client_ca_file"), "{found}");
}
