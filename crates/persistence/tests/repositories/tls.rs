//! PostgreSQL with TLS: `require` takes any certificate, `verify-full` only a trusted one; client
//! certificates instead of passwords.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::Path,
};

use headgate_persistence::{Database, DatabaseConfig, DatabaseConfigError};
use headgate_testkit::{CertificateAuthority, Postgres, Validity, require, wait_until};
use headgate_tls_client::TlsFiles;

use crate::support::{TIMEOUT, run};

/// Writes an authority and a certificate for 127.0.0.1.
fn make_certificates(folder: &Path, validity: Validity) -> CertificateAuthority {
    let authority = CertificateAuthority::new("authority");
    authority.write(folder);
    authority.issue_valid(&["127.0.0.1"], validity).write(folder, "server");
    authority
}

/// Configures TLS; the key must be readable by the server's user only.
fn turn_tls_on(server: &Postgres) {
    let owner = fs::metadata(server.folder()).unwrap();
    for (name, setting) in
        [("server.key", "ssl_key_file"), ("server.crt", "ssl_cert_file"), ("ca.crt", "ssl_ca_file")]
    {
        let file = server.folder().join(name);
        chown(&file, Some(owner.uid()), Some(owner.gid())).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        server.psql(&format!("ALTER SYSTEM SET {setting} = '{}'", file.display()));
    }
    server.psql("ALTER SYSTEM SET ssl = on");
    server.start_again();
}

#[test]
fn a_configured_authority_is_trusted_and_others_are_not() {
    let server = require!(Postgres::start());
    make_certificates(server.folder(), Validity::Long);
    turn_tls_on(&server);
    let open = |query: &str| {
        let config = DatabaseConfig::from_url(&format!("{}?{query}", server.url())).unwrap();
        Database::open(&config.connect_timeout(TIMEOUT))
    };
    let authority = server.folder().join("ca.crt");
    let named = format!("sslmode=verify-full&sslrootcert={}", authority.display());
    let encrypted = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
        WHERE ssl AND application_name = 'headgate'";
    run(async {
        let signed = named.replace("verify-full", "verify-ca");
        for query in ["sslmode=require", "sslmode=prefer", &signed, &named] {
            let database = open(query);
            database.ping().await.unwrap();
            // The session before may take a moment to end.
            assert!(wait_until(TIMEOUT, || server.psql(encrypted) == "1"), "{query}");
            database.close().await;
        }
        // The authority is trusted, but the host name is not in the certificate.
        let elsewhere = server.url().replace("127.0.0.1", "localhost");
        let config = DatabaseConfig::from_url(&format!("{elsewhere}?{named}")).unwrap();
        let database = Database::open(&config.connect_timeout(TIMEOUT));
        let error = database.ping().await.unwrap_err().to_string();
        assert!(
            error.contains("TLS: PostgreSQL's certificate is for another host name"),
            "{error}"
        );
        let config = DatabaseConfig::from_url(&format!("{elsewhere}?{signed}")).unwrap();
        Database::open(&config.connect_timeout(TIMEOUT)).ping().await.unwrap();
        let error = open("sslmode=verify-full").ping().await.unwrap_err().to_string();
        assert!(error.contains("not trusted: set database.ca_file"), "{error}");
    });
}

#[test]
fn a_client_certificate_replaces_the_password() {
    let server = require!(Postgres::start());
    let authority = make_certificates(server.folder(), Validity::Long);
    turn_tls_on(&server);
    // The certificate of the client has to be signed by the authority, whatever its name is.
    let rules = server.psql("SHOW hba_file");
    let text = fs::read_to_string(&rules).unwrap();
    let demand = "hostssl all all 127.0.0.1/32 trust clientcert=verify-ca\n\
                  hostssl all all ::1/128 trust clientcert=verify-ca\n";
    fs::write(&rules, format!("{demand}{text}")).unwrap();
    // A reload would take effect a moment later.
    server.start_again();

    let folder = tempfile::tempdir().unwrap();
    let ca_file = Some(authority.write(folder.path()));
    let (cert, key) = authority.issue(&["client.test"]).write(folder.path(), "client");
    let named = TlsFiles { ca_file, cert_file: Some(cert), key_file: Some(key) };
    let unnamed = TlsFiles { cert_file: None, key_file: None, ..named.clone() };
    let open = |files: &TlsFiles| {
        let url = format!("{}?sslmode=verify-full", server.url());
        let config = DatabaseConfig::from_url(&url).unwrap().tls_files(files).unwrap();
        Database::open(&config.connect_timeout(TIMEOUT))
    };
    run(async {
        open(&named).ping().await.unwrap();
        let error = open(&unnamed).ping().await.unwrap_err().to_string();
        assert!(error.contains("client certificate"), "{error}");
    });

    // Files that would not be used, and invalid files, are rejected at the start.
    let lax = DatabaseConfig::from_url(&format!("{}?sslmode=require", server.url())).unwrap();
    assert_eq!(lax.tls_files(&named).unwrap_err(), DatabaseConfigError::Unverified);
    let swapped =
        TlsFiles { cert_file: named.key_file.clone(), key_file: named.cert_file.clone(), ..named };
    let strict = DatabaseConfig::from_url(&format!("{}?sslmode=verify-full", server.url()));
    let error = strict.unwrap().tls_files(&swapped).unwrap_err();
    assert!(error.to_string().contains("client.key: invalid client certificate"), "{error}");
}

#[test]
fn an_expired_certificate_is_reported() {
    let server = require!(Postgres::start());
    make_certificates(server.folder(), Validity::Expired);
    turn_tls_on(&server);
    let ca_file = Some(server.folder().join("ca.crt"));
    let files = TlsFiles { ca_file, ..TlsFiles::default() };
    let config = DatabaseConfig::from_url(&format!("{}?sslmode=verify-full", server.url()));
    let config = config.unwrap().tls_files(&files).unwrap().connect_timeout(TIMEOUT);
    run(async {
        let error = Database::open(&config).ping().await.unwrap_err().to_string();
        assert!(error.contains("PostgreSQL's certificate has expired"), "{error}");
    });
}
