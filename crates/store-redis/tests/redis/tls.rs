//! TLS: trusted authorities, client certificates, and error messages.

use std::{fs, path::Path, process::Command, time::Duration};

use headgate_store_redis::{RedisConfig, RedisStore};
use headgate_testkit::{Redis, Skip, find_program, free_port, require, wait_until};
use tempfile::TempDir;

use crate::support::{TEST_TIMEOUT, acquire, acquire_eventually, per_minute, runtime};

const KEY: [&str; 5] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

/// An authority, with certificates for 127.0.0.1 (`redis`) and for a client (`client`).
struct Authority {
    folder: TempDir,
}

impl Authority {
    fn new(name: &str) -> Result<Self, Skip> {
        find_program("openssl")?;
        let folder = tempfile::tempdir().unwrap();
        let subject = format!("/CN={name}");
        let authority =
            ["req", "-x509", "-days", "2", "-subj", &subject, "-keyout", "ca.key", "-out"];
        openssl(folder.path(), &[&authority[..], &["ca.crt"], &KEY].concat());
        let authority = Self { folder };
        authority.issue("redis");
        authority.issue("client");
        Ok(authority)
    }

    fn issue(&self, name: &str) {
        let file = |kind: &str| format!("{name}.{kind}");
        let (key, csr, crt) = (file("key"), file("csr"), file("crt"));
        let subject = format!("/CN={name}");
        let request = ["req", "-subj", &subject, "-keyout", &key, "-out", &csr];
        openssl(self.folder.path(), &[&request[..], &KEY].concat());
        fs::write(self.folder.path().join("names"), "subjectAltName=IP:127.0.0.1").unwrap();
        let sign = ["x509", "-req", "-in", &csr, "-CA", "ca.crt", "-CAkey", "ca.key"];
        let rest = ["-CAcreateserial", "-days", "2", "-extfile", "names", "-out", &crt];
        openssl(self.folder.path(), &[&sign[..], &rest].concat());
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn pem(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// A Redis with TLS on `port`; `auth_clients` is its option `tls-auth-clients`.
    fn redis(&self, port: u16, auth_clients: &str) -> Result<Redis, Skip> {
        let tls = [
            ["--tls-port".to_owned(), port.to_string()],
            ["--tls-cert-file".to_owned(), self.path("redis.crt")],
            ["--tls-key-file".to_owned(), self.path("redis.key")],
            ["--tls-ca-cert-file".to_owned(), self.path("ca.crt")],
            ["--tls-auth-clients".to_owned(), auth_clients.to_owned()],
        ];
        Redis::builder().args(tls.concat()).start()
    }
}

fn openssl(folder: &Path, args: &[&str]) {
    let made = Command::new("openssl").args(args).current_dir(folder).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

fn config(scheme: &str, port: u16) -> RedisConfig {
    RedisConfig::from_url(&format!("{scheme}://127.0.0.1:{port}")).unwrap().timeout(TEST_TIMEOUT)
}

/// The reported error of a Redis that cannot be connected to.
fn trouble(config: RedisConfig) -> String {
    let store = RedisStore::connect(config.timeout(Duration::from_millis(100)));
    assert!(wait_until(TEST_TIMEOUT, || store.status().outage().is_some()), "no error is reported");
    store.status().outage().unwrap()
}

#[test]
fn only_the_configured_authority_is_trusted() {
    let authority = require!(Authority::new("authority"));
    let port = free_port();
    let redis = require!(authority.redis(port, "no"));
    let runtime = runtime();
    let _guard = runtime.enter();
    let trusting = config("rediss", port).root_certificate(authority.pem("ca.crt")).unwrap();
    let trusting = RedisStore::connect(trusting);
    runtime.block_on(async {
        assert!(acquire(&trusting, "k", &per_minute(5)).await.unwrap()[0].allowed);
        let stranger = require!(Authority::new("stranger"));
        let wary = config("rediss", port).root_certificate(stranger.pem("ca.crt")).unwrap();
        let wary = RedisStore::connect(wary);
        let error = acquire(&wary, "k", &per_minute(5)).await.unwrap_err();
        assert!(error.is_outage() && error.to_string().contains("not trusted"), "{error}");
    });
    assert_eq!(trusting.status().outage(), None);

    // Every mistake has its own message.
    let wrong = trouble(config("rediss", redis.port()));
    assert!(wrong.contains("may not speak TLS"), "{wrong}");
    let wrong = trouble(config("redis", port));
    assert!(wrong.contains("rediss://"), "{wrong}");
    let wrong = trouble(config("rediss", free_port()));
    assert!(wrong.contains("refused") && !wrong.contains("TLS"), "{wrong}");
    let default = rustls::crypto::CryptoProvider::get_default();
    assert!(default.is_none(), "the program's own choice of cryptography is not made for it");
}

#[test]
fn a_client_certificate_is_sent_if_required() {
    let authority = require!(Authority::new("authority"));
    let port = free_port();
    let _redis = require!(authority.redis(port, "yes"));
    let runtime = runtime();
    let _guard = runtime.enter();
    let nameless = || config("rediss", port).root_certificate(authority.pem("ca.crt")).unwrap();
    let (certificate, key) = (authority.pem("client.crt"), authority.pem("client.key"));
    let named = nameless().client_certificate(certificate.clone(), key.clone()).unwrap();
    let named = RedisStore::connect(named);
    runtime.block_on(async {
        assert!(acquire_eventually(&named, "k", &per_minute(5)).await[0].allowed);
    });
    let unnamed = trouble(nameless());
    assert!(unnamed.contains("demands a client certificate"), "{unnamed}");
    let stranger = require!(Authority::new("stranger"));
    let strange =
        nameless().client_certificate(stranger.pem("client.crt"), stranger.pem("client.key"));
    let strange = trouble(strange.unwrap());
    assert!(strange.contains("does not accept the client certificate"), "{strange}");

    // Invalid certificates and keys are rejected at the start.
    assert!(nameless().root_certificate("nonsense").is_err());
    assert!(nameless().client_certificate(key.clone(), certificate.clone()).is_err());
    assert!(nameless().client_certificate(certificate, stranger.pem("client.key")).is_err());
}
