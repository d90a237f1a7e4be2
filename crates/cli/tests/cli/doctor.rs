//! `headgate doctor` against real services, healthy and broken.

mod database;

use std::{net::TcpListener, process::Output, time::Duration};

use headgate_testkit::{
    CertificateAuthority, Issuer, ManagementServer, Nginx, Postgres, Redis, RedisCluster, Sentinel,
    free_port, require, skewed_clock, wait_until,
};
use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{Server, run, stdout};

/// What messages say of services that did not answer in time.
const LATE: [&str; 5] = [
    "timed out",
    "did not answer within",
    "no answer within",
    "no connection within",
    "no response within",
];

/// A data folder, and variables for a doctor that finds no fault with it.
struct Patient {
    folder: TempDir,
    variables: Vec<(String, String)>,
}

/// What the doctor found.
struct Findings {
    output: Output,
    report: Value,
}

impl Patient {
    fn new(variables: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data").to_str().unwrap().to_owned();
        let own = [
            ("HEADGATE__SERVER__DATA_DIR", data.as_str()),
            ("HEADGATE__SERVER__PORT", "0"),
            ("HEADGATE__SERVER__GRPC_PORT", "0"),
            ("HEADGATE__SERVER__MAX_CONNECTIONS", "10"),
        ];
        let variables = own.iter().chain(variables);
        let variables =
            variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self { folder, variables }
    }

    /// Runs the doctor, and a few times more if it says that something did not answer in time: on a
    /// busy machine, that may be up.
    fn examine(&self, arguments: &[&str]) -> Findings {
        let mut found = self.examine_once(arguments);
        for _ in 0..3 {
            if found.is_late() {
                found = self.examine_once(arguments);
            }
        }
        found
    }

    fn examine_once(&self, arguments: &[&str]) -> Findings {
        let variables: Vec<_> =
            self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let output = run(&[&["doctor", "--json"], arguments].concat(), &variables);
        let report = serde_json::from_str(stdout(&output)).unwrap_or_else(|_| panic!("{output:?}"));
        Findings { output, report }
    }
}

impl Findings {
    fn of(variables: &[(&str, &str)]) -> Self {
        Patient::new(variables).examine(&[])
    }

    fn code(&self) -> Option<i32> {
        self.output.status.code()
    }

    fn is_late(&self) -> bool {
        LATE.iter().any(|late| stdout(&self.output).contains(late))
    }

    /// The only finding of this level in this area whose message contains `text`.
    #[track_caller]
    fn find(&self, level: &str, area: &str, text: &str) -> &Value {
        let findings = self.report["findings"].as_array().unwrap();
        let mut fitting = findings.iter().filter(|finding| {
            let message = finding["message"].as_str().unwrap();
            finding["level"] == level && finding["area"] == area && message.contains(text)
        });
        let found = fitting.next().unwrap_or_else(|| panic!("{level} {area} {text}: {self:?}"));
        assert!(level == "ok" || !found["advice"].as_str().unwrap().is_empty(), "{found}");
        found
    }

    /// Asserts that this text appears nowhere.
    #[track_caller]
    fn hides(&self, secret: &str) {
        let printed = [&self.output.stdout[..], &self.output.stderr].concat();
        assert!(!String::from_utf8_lossy(&printed).contains(secret), "{self:?}");
    }
}

impl std::fmt::Debug for Findings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#}", self.report)
    }
}

#[test]
fn a_new_installation_has_no_errors_and_nothing_is_created() {
    let patient = Patient::new(&[]);
    let found = patient.examine(&[]);
    assert_eq!(found.code(), Some(0), "{found:?}");
    found.find("ok", "configuration", "are valid");
    found.find("ok", "redis", "counters are in memory");
    found.find("ok", "database", "does not exist yet");
    found.find("ok", "machine", "is writable");
    assert!(std::fs::read_dir(patient.folder.path()).unwrap().next().is_none());
}

#[test]
fn text_has_a_line_for_each_finding_and_no_colours() {
    let patient = Patient::new(&[]);
    let variables: Vec<_> =
        patient.variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let text = run(&["doctor"], &variables);
    let text = stdout(&text);
    assert!(text.contains("ok       redis           not configured"), "{text}");
    assert!(text.contains("0 errors, "), "{text}");
    assert!(!text.contains('\x1b'), "{text}");
}

#[test]
fn an_invalid_configuration_and_unknown_variables_are_reported() {
    let found = Findings::of(&[
        ("HEADGATE__RATELIMIT__DEFAULT_LIMIT", "many"),
        ("HEADGATE__SERVER__COLOUR", "red"),
    ]);
    assert_eq!(found.code(), Some(1));
    found.find("error", "configuration", "ratelimit.default_limit");
    found.find("error", "configuration", "server.colour");

    let found = Findings::of(&[("HEADGATE_REDIS_URL", "redis://:hidden@127.0.0.1")]);
    assert_eq!(found.code(), Some(0));
    let ignored = found.find("warning", "configuration", "HEADGATE_REDIS_URL");
    assert!(ignored["advice"].as_str().unwrap().contains("HEADGATE__REDIS__URL"), "{ignored}");
    found.hides("hidden");
}

#[test]
fn a_healthy_redis_is_reported_with_its_version() {
    let options = ["--maxmemory", "100mb", "--maxmemory-policy", "noeviction"];
    let redis = require!(Redis::builder().args(options).start());
    let found = Findings::of(&[("HEADGATE__REDIS__URL", &redis.url())]);
    assert_eq!(found.code(), Some(0), "{found:?}");
    found.find("ok", "redis", "answers (Redis ");
    found.find("ok", "redis", "scripts and keys are permitted");
    assert!(!format!("{found:?}").contains("maxmemory"), "{found:?}");
    assert_eq!(redis.cli(&["DBSIZE"]), "0", "the doctor leaves no keys");
}

#[test]
fn an_eviction_policy_that_lifts_limits_is_a_warning_and_fails_if_strict() {
    let options = ["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"];
    let redis = require!(Redis::builder().args(options).start());
    let patient = Patient::new(&[("HEADGATE__REDIS__URL", &redis.url())]);
    let found = patient.examine(&[]);
    let policy = found.find("warning", "redis", "allkeys-lru");
    assert!(policy["advice"].as_str().unwrap().contains("noeviction"), "{policy}");
    assert_eq!(found.code(), Some(0), "{found:?}");
    assert_eq!(patient.examine(&["--strict"]).code(), Some(1));
}

#[test]
fn a_redis_without_a_memory_limit_is_a_warning() {
    let redis = require!(Redis::start());
    let found = Findings::of(&[("HEADGATE__REDIS__URL", &redis.url())]);
    found.find("warning", "redis", "maxmemory 0");
}

#[test]
fn wrong_passwords_are_errors_and_are_not_printed() {
    let redis = require!(Redis::builder().password("right-secret").start());
    let postgres = require!(Postgres::builder().password("right-secret").start());
    let found = Findings::of(&[
        ("HEADGATE__REDIS__URL", &redis.url().replace("right-secret", "wrong-secret")),
        ("HEADGATE__DATABASE__URL", &postgres.url().replace("right-secret", "wrong-secret")),
    ]);
    assert_eq!(found.code(), Some(1));
    let refused = found.find("error", "redis", "WRONGPASS");
    assert!(refused["advice"].as_str().unwrap().contains("password"), "{refused}");
    let refused = found.find("error", "database", "password authentication failed");
    assert!(refused["advice"].as_str().unwrap().contains("password"), "{refused}");
    found.hides("wrong-secret");
}

#[test]
fn a_user_that_may_not_run_scripts_or_use_keys_is_an_error() {
    let redis = require!(Redis::start());
    let port = redis.port();
    for (user, rules) in [
        ("scriptless", &["~*", "+@all", "-@scripting"][..]),
        ("keyless", &["~ratelimit:*", "+@all"]),
    ] {
        let setup = [&["ACL", "SETUSER", user, "on", ">hidden-word"], rules].concat();
        assert_eq!(redis.cli(&setup), "OK");
        let url = format!("redis://{user}:hidden-word@127.0.0.1:{port}");
        let found = Findings::of(&[("HEADGATE__REDIS__URL", &url)]);
        assert_eq!(found.code(), Some(1), "{user}");
        let refused = found.find("error", "redis", "Redis refuses checks of keys");
        let is_about_rules = refused["message"].as_str().unwrap().contains("ratelimit:*");
        assert_eq!(is_about_rules, user == "scriptless", "{refused}");
        found.hides("hidden-word");
    }
}

#[test]
fn a_wrong_clock_is_a_warning() {
    let an_hour = 3_600_000_000;
    let redis = require!(Redis::builder().fake_clock(1_771_840_800_000_000 - an_hour).start());
    let found = Findings::of(&[("HEADGATE__REDIS__URL", &redis.url())]);
    found.find("warning", "redis", "ahead of the clock of");

    let postgres = require!(Postgres::start());
    let mut patient = Patient::new(&[("HEADGATE__DATABASE__URL", &postgres.url())]);
    // A slow answer looks like a wrong clock.
    let is_on_time = || !stdout(&patient.examine(&[]).output).contains("clock");
    assert!(wait_until(Duration::from_secs(120), is_on_time), "{:?}", patient.examine(&[]));
    let wrong = require!(skewed_clock(-7_200));
    patient.variables.extend(wrong.into_iter().map(|(name, value)| (name.to_owned(), value)));
    let skewed = patient.examine(&[]);
    skewed.find("warning", "database", "behind the clock of");
}

#[test]
fn services_that_are_down_are_reported_together() {
    let address = |path: &str| format!("http://127.0.0.1:{}{path}", free_port());
    let found = Findings::of(&[
        ("HEADGATE__REDIS__URL", &format!("redis://127.0.0.1:{}", free_port())),
        ("HEADGATE__DATABASE__URL", &format!("postgresql://u:hidden@127.0.0.1:{}/x", free_port())),
        ("HEADGATE__AUTH__JWKS_URL", &address("/keys?key=hidden")),
        ("HEADGATE__ENVOY__ENABLED", "true"),
        ("HEADGATE__ENVOY__XDS__URL", &address("")),
        ("HEADGATE__OBSERVABILITY__TRACE__ENABLED", "true"),
        ("HEADGATE__OBSERVABILITY__TRACE__ENDPOINT", &address("")),
        ("HEADGATE__OBSERVABILITY__METRICS__OTLP__ENABLED", "true"),
        ("HEADGATE__OBSERVABILITY__METRICS__OTLP__ENDPOINT", &address("")),
        (
            "HEADGATE__WEBHOOKS",
            &format!("[{{url: '{}', secret: hidden-0123456789}}]", address("/hidden")),
        ),
    ]);
    assert_eq!(found.code(), Some(1));
    for area in ["redis", "database", "jwks", "xds"] {
        found.find("error", area, "");
    }
    for area in ["traces", "metrics", "webhooks"] {
        found.find("warning", area, "cannot connect");
    }
    found.hides("hidden");
}

#[test]
fn services_that_are_up_are_ok() {
    let (issuer, management) = (Issuer::start(), require!(ManagementServer::start()));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let receiver = format!("http://{}/x", listener.local_addr().unwrap());
    let found = Findings::of(&[
        ("HEADGATE__AUTH__JWKS_URL", &issuer.url()),
        ("HEADGATE__ENVOY__ENABLED", "true"),
        ("HEADGATE__ENVOY__XDS__URL", &format!("http://127.0.0.1:{}", management.port())),
        ("HEADGATE__WEBHOOKS", &format!("[{{url: '{receiver}', secret: s-0123456789abcdef}}]")),
    ]);
    found.find("ok", "jwks", "keys");
    found.find("ok", "xds", "accepts connections");
    found.find("ok", "webhooks", "accepts connections");
    assert_eq!(found.code(), Some(0), "{found:?}");
}

#[test]
fn receivers_over_tls_must_be_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let authority = CertificateAuthority::new("authority");
    let files = authority.issue(&["127.0.0.1"]).write(folder.path(), "receiver");
    let clients = authority.write(folder.path());
    let behind = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = behind.local_addr().unwrap().port();
    let nginx = require!(Nginx::start_tls(port, &files, Some(&clients)));
    let webhooks = |more: &str| {
        let port = nginx.port();
        format!("[{{url: 'https://127.0.0.1:{port}/x', secret: s-0123456789abcdef{more}}}]")
    };
    let of = |more: &str| Findings::of(&[("HEADGATE__WEBHOOKS", &webhooks(more))]);
    of("").find("warning", "webhooks", "not trusted: set webhooks[].ca_file");
    let trusting = format!(", ca_file: {}", clients.display());
    let (cert, key) = authority.issue(&["client.test"]).write(folder.path(), "client");
    let named = format!("{trusting}, cert_file: {}, key_file: {}", cert.display(), key.display());
    of(&named).find("ok", "webhooks", "accepts connections");
    // Nothing was sent to the receiver behind it.
    behind.set_nonblocking(true).unwrap();
    assert!(behind.accept().is_err());
}

#[cfg(feature = "kafka")]
#[test]
fn brokers_are_asked_about_topics() {
    let kafka = require!(headgate_testkit::Kafka::builder().secure().start());
    let secure = kafka.secure();
    let variables = |password| {
        [
            ("HEADGATE__KAFKA__BROKERS", secure.sasl_ssl.clone()),
            ("HEADGATE__KAFKA__SECURITY_PROTOCOL", "SASL_SSL".to_owned()),
            ("HEADGATE__KAFKA__SASL_MECHANISM", "SCRAM-SHA-512".to_owned()),
            ("HEADGATE__KAFKA__USERNAME", secure.username.to_owned()),
            ("HEADGATE__KAFKA__PASSWORD", password),
            ("HEADGATE__KAFKA__CA_FILE", secure.ca_file.to_str().unwrap().to_owned()),
            ("HEADGATE__KAFKA__TOPIC_THRESHOLD", "no.such.topic".to_owned()),
        ]
    };
    let of = |password: &str| {
        let variables = variables(password.to_owned());
        let variables: Vec<_> = variables.iter().map(|(name, it)| (*name, it.as_str())).collect();
        Findings::of(&variables)
    };
    let found = of(secure.password);
    found.find("ok", "kafka", "the brokers answer (1 in the cluster)");
    found.find("warning", "kafka", "there is no topic no.such.topic");
    // It was not created by the question.
    of(secure.password).find("warning", "kafka", "there is no topic no.such.topic");
    let wrong = of("hidden-password");
    wrong.find("warning", "kafka", "no broker answers");
    wrong.hides("hidden-password");
}

#[test]
fn every_node_of_a_cluster_is_checked() {
    let cluster = require!(RedisCluster::start(3, 0));
    let urls = cluster.urls().join(",");
    let found = Findings::of(&[("HEADGATE__REDIS__URLS", &urls)]);
    found.find("ok", "redis", "slots 0-");
    found.find("ok", "redis", "-16383 (");
    found.find("ok", "redis", "scripts and keys are permitted");
    let found =
        Findings::of(&[("HEADGATE__REDIS__URLS", &format!("redis://127.0.0.1:{}", free_port()))]);
    found.find("error", "redis", "cluster");
}

#[test]
fn the_master_behind_sentinels_is_checked() {
    let sentinel = require!(Sentinel::start());
    let nodes = sentinel.sentinel_urls().join(",").replace("redis://", "");
    let url = format!("redis+sentinel://{nodes}/{}", sentinel.master_name());
    let found = Findings::of(&[("HEADGATE__REDIS__URL", &url)]);
    found.find("ok", "redis", "Sentinel master");
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_is_not_writable_is_an_error() {
    let found = Findings::of(&[("HEADGATE__SERVER__DATA_DIR", "/proc/headgate")]);
    found.find("error", "machine", "cannot write to the data folder /proc/headgate");
    assert_eq!(found.code(), Some(1));
}

#[test]
fn files_that_others_may_read_are_reported() {
    use std::{fs, os::unix::fs::PermissionsExt};

    let patient = Patient::new(&[]);
    let data = patient.folder.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o777)).unwrap();
    for name in ["admin-token", "headgate.db"] {
        fs::write(data.join(name), "").unwrap();
        fs::set_permissions(data.join(name), fs::Permissions::from_mode(0o644)).unwrap();
    }
    let found = patient.examine(&[]);
    found.find("warning", "machine", "other users may write to the data folder");
    found.find("warning", "machine", "other users may read the database");
    found.find("error", "machine", "is readable by other users (mode 644)");
}

#[test]
fn ports_are_free_served_or_taken() {
    let server = Server::start(&[]);
    super::backup::until_ready(&server);
    let port = |url: &str| url.rsplit(':').next().unwrap().to_owned();
    let (rest, grpc) = (port(server.url()), port(&server.grpc_url()));
    let found =
        Findings::of(&[("HEADGATE__SERVER__PORT", &rest), ("HEADGATE__SERVER__GRPC_PORT", &grpc)]);
    assert_eq!(found.code(), Some(0), "{found:?}");
    found.find("ok", "listeners", "server.port");
    found.find("ok", "listeners", "is served by Headgate");

    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap().port().to_string();
    let found = Findings::of(&[("HEADGATE__SERVER__GRPC_PORT", &taken)]);
    found.find("error", "listeners", "server.grpc_port: cannot listen");
    assert_eq!(found.code(), Some(1));
}

#[test]
fn unix_sockets_are_free_served_or_unusable() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (rest, grpc) = (path("rest.sock"), path("grpc.sock"));
    let sockets =
        [("HEADGATE__SERVER__UNIX_SOCKET", &*rest), ("HEADGATE__SERVER__GRPC_UNIX_SOCKET", &grpc)];
    let found = Findings::of(&sockets);
    found.find("ok", "listeners", "rest.sock can be created");
    assert!(folder.path().read_dir().unwrap().next().is_none(), "nothing is created");
    let mut server = Server::start(&sockets);
    super::backup::until_ready(&server);
    let found = Findings::of(&sockets);
    found.find("ok", "listeners", "rest.sock is served by Headgate");
    found.find("ok", "listeners", "grpc.sock is served by Headgate");
    server.stop("-KILL");
    let found = Findings::of(&sockets);
    found.find("ok", "listeners", "rest.sock is left over");

    let _other = std::os::unix::net::UnixListener::bind(path("other.sock")).unwrap();
    std::fs::write(path("file"), "").unwrap();
    let long = path(&"a".repeat(200));
    let (taken, file, nowhere) = (path("other.sock"), path("file"), path("none/rest.sock"));
    for (path, reason) in [
        (&taken, "another process listens there"),
        (&file, "is not a socket"),
        (&nowhere, "No such file or directory"),
        (&long, "path must be shorter"),
    ] {
        let found = Findings::of(&[("HEADGATE__SERVER__GRPC_UNIX_SOCKET", path)]);
        found.find("error", "listeners", reason);
        assert_eq!(found.code(), Some(1));
    }
}

#[test]
fn an_expired_certificate_and_a_missing_one_are_errors() {
    let found = Findings::of(&[
        ("HEADGATE__REDIS__URL", &format!("rediss://127.0.0.1:{}", free_port())),
        ("HEADGATE__REDIS__CA", include_str!("doctor/expired.pem")),
        (
            "HEADGATE__DATABASE__URL",
            "postgresql://127.0.0.1:1/x?sslmode=verify-full&sslrootcert=/no/ca.pem",
        ),
    ]);
    assert_eq!(found.code(), Some(1));
    let expired = found.find("error", "certificates", "redis.ca: expired at 2020-12-31");
    assert!(expired["advice"].as_str().unwrap().contains("renew"), "{expired}");
    found.find("error", "certificates", "sslrootcert: cannot read /no/ca.pem");
}
