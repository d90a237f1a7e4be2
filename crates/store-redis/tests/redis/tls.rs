//! `rediss://`: an authority of one's own is trusted when named, and only then.

use std::{fs, path::Path, process::Command, time::Duration};

use headgate_store_redis::{RedisConfig, RedisStore};
use headgate_testkit::{Redis, Skip, free_port, require};

use crate::support::{PATIENCE, acquire, per_minute, runtime};

/// Makes an authority and a certificate for 127.0.0.1 that it signed.
fn make_certificates(folder: &Path) -> Result<(), Skip> {
    if let Err(error) = Command::new("openssl").arg("version").output() {
        return Err(Skip { component: "openssl".into(), reason: error.to_string() });
    }
    let openssl = |args: &[&str]| {
        let made = Command::new("openssl").args(args).current_dir(folder).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    };
    let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    let authority = [
        "req",
        "-x509",
        "-days",
        "2",
        "-subj",
        "/CN=authority",
        "-keyout",
        "ca.key",
        "-out",
        "ca.crt",
    ];
    openssl(&[&authority[..], &key].concat());
    let request = ["req", "-subj", "/CN=redis", "-keyout", "redis.key", "-out", "redis.csr"];
    openssl(&[&request[..], &key].concat());
    fs::write(folder.join("names"), "subjectAltName=IP:127.0.0.1").unwrap();
    let sign = [
        "x509",
        "-req",
        "-in",
        "redis.csr",
        "-CA",
        "ca.crt",
        "-CAkey",
        "ca.key",
        "-CAcreateserial",
    ];
    openssl(&[&sign[..], &["-days", "2", "-extfile", "names", "-out", "redis.crt"]].concat());
    Ok(())
}

#[test]
fn a_named_authority_is_trusted_and_a_stranger_is_not() {
    let folder = tempfile::tempdir().unwrap();
    require!(make_certificates(folder.path()));
    let file = |name: &str| folder.path().join(name).display().to_string();
    let port = free_port();
    let tls = [
        ["--tls-port".to_owned(), port.to_string()],
        ["--tls-cert-file".to_owned(), file("redis.crt")],
        ["--tls-key-file".to_owned(), file("redis.key")],
        ["--tls-ca-cert-file".to_owned(), file("ca.crt")],
        ["--tls-auth-clients".to_owned(), "no".to_owned()],
    ];
    let _redis = require!(Redis::builder().args(tls.concat()).start());

    let runtime = runtime();
    let _guard = runtime.enter();
    let config = || RedisConfig::from_url(&format!("rediss://127.0.0.1:{port}")).unwrap();
    let trusting = config().timeout(PATIENCE).root_certificate(fs::read(file("ca.crt")).unwrap());
    let trusting = RedisStore::connect(trusting);
    let wary = RedisStore::connect(config().timeout(Duration::from_millis(200)));
    runtime.block_on(async {
        assert!(acquire(&trusting, "k", &per_minute(5)).await.unwrap()[0].allowed);
        assert!(acquire(&wary, "k", &per_minute(5)).await.unwrap_err().is_outage());
    });
}
