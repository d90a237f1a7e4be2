//! TLS: trusted authorities, client certificates, and error messages.

use std::time::Duration;

use headgate_store_redis::{RedisConfig, RedisStore};
use headgate_testkit::{
    CertificateAuthority, Redis, RedisCluster, Skip, Validity, free_port, require, wait_until,
};
use tempfile::TempDir;

use crate::support::{TEST_TIMEOUT, acquire, acquire_eventually, patient, per_minute, runtime};

/// An authority, with certificates for 127.0.0.1 (`redis`) and for a client (`client`) in files.
struct Authority {
    folder: TempDir,
}

impl Authority {
    fn new(name: &str) -> Self {
        Self::with_validity(name, Validity::Long)
    }

    /// An authority whose certificate for Redis is valid at certain times only.
    fn with_validity(name: &str, validity: Validity) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = CertificateAuthority::new(name);
        authority.write(folder.path());
        authority.issue_valid(&["127.0.0.1"], validity).write(folder.path(), "redis");
        authority.issue(&["client.test"]).write(folder.path(), "client");
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn pem(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// Options of a Redis that has the certificate.
    fn options(&self) -> Vec<String> {
        let options = [
            ["--tls-cert-file".to_owned(), self.path("redis.crt")],
            ["--tls-key-file".to_owned(), self.path("redis.key")],
            ["--tls-ca-cert-file".to_owned(), self.path("ca.crt")],
        ];
        options.concat()
    }

    /// A Redis with TLS on `port`; `auth_clients` is its option `tls-auth-clients`.
    fn redis(&self, port: u16, auth_clients: &str) -> Result<Redis, Skip> {
        let tls = [
            ["--tls-port".to_owned(), port.to_string()],
            ["--tls-auth-clients".to_owned(), auth_clients.to_owned()],
        ];
        Redis::builder().args([tls.concat(), self.options()].concat()).start()
    }
}

fn config(scheme: &str, port: u16) -> RedisConfig {
    patient(RedisConfig::from_url(&format!("{scheme}://127.0.0.1:{port}")).unwrap())
}

/// The reported error of a Redis that cannot be connected to.
fn trouble(config: RedisConfig) -> String {
    let store = RedisStore::connect(config);
    assert!(wait_until(TEST_TIMEOUT, || store.status().outage().is_some()), "no error is reported");
    store.status().outage().unwrap()
}

#[test]
fn only_the_configured_authority_is_trusted() {
    let authority = Authority::new("authority");
    let port = free_port();
    let redis = require!(authority.redis(port, "no"));
    let runtime = runtime();
    let _guard = runtime.enter();
    let trusting = config("rediss", port).root_certificate(authority.pem("ca.crt")).unwrap();
    let trusting = RedisStore::connect(trusting);
    runtime.block_on(async {
        assert!(acquire(&trusting, "k", &per_minute(5)).await.unwrap()[0].allowed);
        let stranger = Authority::new("stranger");
        let wary = config("rediss", port).root_certificate(stranger.pem("ca.crt")).unwrap();
        let wary = RedisStore::connect(wary);
        let error = acquire(&wary, "k", &per_minute(5)).await.unwrap_err();
        assert!(error.is_outage() && error.to_string().contains("not trusted"), "{error}");
    });
    assert_eq!(trusting.status().outage(), None);

    // Every mistake has its own message.
    // It waits for the rest of a command.
    let wrong = config("rediss", redis.port()).connect_timeout(Duration::from_secs(1));
    let wrong = trouble(wrong);
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
    let authority = Authority::new("authority");
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
    let stranger = Authority::new("stranger");
    let strange =
        nameless().client_certificate(stranger.pem("client.crt"), stranger.pem("client.key"));
    let strange = trouble(strange.unwrap());
    assert!(strange.contains("does not accept the client certificate"), "{strange}");

    // Invalid certificates and keys are rejected at the start.
    assert!(nameless().root_certificate("nonsense").is_err());
    assert!(nameless().client_certificate(key.clone(), certificate.clone()).is_err());
    assert!(nameless().client_certificate(certificate, stranger.pem("client.key")).is_err());
}

#[test]
fn an_expired_certificate_and_another_host_name_are_reported() {
    let authority = Authority::with_validity("authority", Validity::Expired);
    let port = free_port();
    let _redis = require!(authority.redis(port, "no"));
    let runtime = runtime();
    let _guard = runtime.enter();
    let trusting = config("rediss", port).root_certificate(authority.pem("ca.crt")).unwrap();
    let expired = trouble(trusting);
    assert!(expired.contains("Redis's certificate has expired"), "{expired}");

    let authority = Authority::new("authority");
    let port = free_port();
    let _redis = require!(authority.redis(port, "no"));
    let url = format!("rediss://user:hunter2@localhost:{port}");
    let elsewhere = patient(RedisConfig::from_url(&url).unwrap());
    let elsewhere = trouble(elsewhere.root_certificate(authority.pem("ca.crt")).unwrap());
    assert!(elsewhere.contains("for another host name"), "{elsewhere}");
    assert!(!elsewhere.contains("hunter2"), "{elsewhere}");
}

#[test]
fn a_cluster_is_reached_over_tls_with_client_certificates() {
    let authority = Authority::new("authority");
    // The port that nodes announce is that of TLS; the other one is for the test's own commands.
    let cluster = require!(RedisCluster::start_tls(3, &authority.options()));
    let runtime = runtime();
    let _guard = runtime.enter();
    let urls = cluster.tls_urls();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let nameless = || {
        let config = patient(RedisConfig::cluster(&urls).unwrap());
        config.root_certificate(authority.pem("ca.crt")).unwrap()
    };
    let named = nameless()
        .client_certificate(authority.pem("client.crt"), authority.pem("client.key"))
        .unwrap();
    let named = RedisStore::connect(named);
    runtime.block_on(async {
        // Keys of all nodes.
        for key in 0..12 {
            let key = format!("k{key}");
            assert!(acquire_eventually(&named, &key, &per_minute(5)).await[0].allowed);
        }
    });
    let unnamed = RedisStore::connect(nameless());
    let error = runtime.block_on(acquire(&unnamed, "k", &per_minute(5))).unwrap_err();
    assert!(error.is_outage(), "{error}");
}
