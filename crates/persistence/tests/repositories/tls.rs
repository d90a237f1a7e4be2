//! PostgreSQL with TLS: `require` takes any certificate, `verify-full` only a trusted one.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::Path,
    process::Command,
};

use headgate_persistence::{Database, DatabaseConfig};
use headgate_testkit::{Postgres, Skip, require};

use crate::support::{TIMEOUT, run};

/// Creates an authority and a certificate for 127.0.0.1.
fn make_certificates(folder: &Path) -> Result<(), Skip> {
    if let Err(error) = Command::new("openssl").arg("version").output() {
        return Err(Skip { component: "openssl".into(), reason: error.to_string() });
    }
    fs::write(folder.join("names"), "subjectAltName=IP:127.0.0.1").unwrap();
    for command in [
        "req -x509 -days 2 -subj /CN=authority -keyout ca.key -out ca.crt \
         -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes",
        "req -subj /CN=postgres -keyout server.key -out server.csr \
         -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes",
        "x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 \
         -extfile names -out server.crt",
    ] {
        let openssl = Command::new("openssl")
            .args(command.split(' ').filter(|arg| !arg.is_empty()))
            .current_dir(folder)
            .output();
        let made = openssl.unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
    Ok(())
}

/// Configures TLS; the key must be readable by the server's user only.
fn turn_tls_on(server: &Postgres) {
    let owner = fs::metadata(server.folder()).unwrap();
    for name in ["server.key", "server.crt"] {
        let file = server.folder().join(name);
        chown(&file, Some(owner.uid()), Some(owner.gid())).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let setting = if name == "server.key" { "ssl_key_file" } else { "ssl_cert_file" };
        server.psql(&format!("ALTER SYSTEM SET {setting} = '{}'", file.display()));
    }
    server.psql("ALTER SYSTEM SET ssl = on");
    server.start_again();
}

#[test]
fn a_configured_authority_is_trusted_and_others_are_not() {
    let server = require!(Postgres::start());
    require!(make_certificates(server.folder()));
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
            assert_eq!(server.psql(encrypted), "1", "{query}");
            database.close().await;
        }
        // The authority is trusted, but the host name is not in the certificate.
        let elsewhere = server.url().replace("127.0.0.1", "localhost");
        let config = DatabaseConfig::from_url(&format!("{elsewhere}?{named}")).unwrap();
        let database = Database::open(&config.connect_timeout(TIMEOUT));
        let error = database.ping().await.unwrap_err().to_string();
        assert!(error.contains("not valid for name"), "{error}");
        let config = DatabaseConfig::from_url(&format!("{elsewhere}?{signed}")).unwrap();
        Database::open(&config.connect_timeout(TIMEOUT)).ping().await.unwrap();
        let error = open("sslmode=verify-full").ping().await.unwrap_err().to_string();
        assert!(error.contains("invalid peer certificate"), "{error}");
    });
}
