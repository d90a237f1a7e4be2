use std::fs;

use headgate_auth::AuthMode;
use headgate_config::Secret;
use headgate_telemetry::{LogFormat, LogLevel, MetricsPath};

use super::*;

/// Loads a file and variables; an error is the text that an operator reads.
fn load(yaml: &str, variables: &[(&str, &str)]) -> Result<Config, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yaml");
    fs::write(&file, yaml).unwrap();
    let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    let folder = format!("{}/", folder.path().display());
    Config::load(Some(&file), variables).map_err(|error| error.to_string().replace(&folder, ""))
}

fn problems(yaml: &str, variables: &[(&str, &str)]) -> String {
    load(yaml, variables).expect_err("a configuration that does not fit")
}

#[test]
fn without_a_file_it_listens_on_loopback_and_stores_in_memory() {
    let config = Config::load(None, []).unwrap();
    assert_eq!(config.server.address().to_string(), "127.0.0.1:8080");
    assert!(config.redis.target().unwrap().is_none());
    assert_eq!(config.ratelimit.default_limit.get(), 100);
    assert_eq!(config.ratelimit.default_window_seconds.get(), 60);
    assert!(config.ratelimit.fail_open);
}

/// The files are copied from the documents unchanged.
#[test]
fn the_founding_documents_files_are_read() {
    let rate_limit = load(
        r#"
app:
  name: "ratelimit"
  version: "0.1.0"
  environment: "production"
server:
  host: "0.0.0.0"
  port: 8080
  grpc_port: 50051
database:
  host: "postgres.k1s0-system.svc.cluster.local"
  port: 5432
  name: "k1s0_system"
  user: "app"
  password: ""
  ssl_mode: "disable"
  max_open_conns: 25
  max_idle_conns: 5
  conn_max_lifetime: "5m"
redis:
  url: "redis://redis.k1s0-system.svc.cluster.local:6379"
  pool_size: 20
  timeout_ms: 100
ratelimit:
  fail_open: true
  default_limit: 100
  default_window_seconds: 60
"#,
        // The document listens on all addresses, and has no authentication.
        &[("HEADGATE__AUTH__MODE", "off")],
    )
    .unwrap();
    assert_eq!(rate_limit.server.grpc_address().to_string(), "0.0.0.0:50051");
    assert_eq!(rate_limit.database.host.as_deref(), Some("postgres.k1s0-system.svc.cluster.local"));
    assert_eq!(rate_limit.database.conn_max_lifetime.get().as_secs(), 300);
    let conns = (&rate_limit.database.max_open_conns, &rate_limit.database.max_idle_conns);
    assert_eq!((conns.0.get(), conns.1.get()), (25, 5));

    let quota = load(
        r#"
app:
  name: "quota"
  version: "0.1.0"
  environment: "production"
server:
  host: "0.0.0.0"
  port: 8080
  grpc_port: 50051
database:
  url: "postgresql://app:@postgres.k1s0-system.svc.cluster.local:5432/k1s0_system"
  schema: "quota"
  max_connections: 10
  min_connections: 2
  connect_timeout_seconds: 5
redis:
  url: "redis://redis.k1s0-system.svc.cluster.local:6379"
  pool_size: 10
  key_prefix: "quota:"
  connect_timeout_seconds: 3
auth:
  jwks_url: "http://auth-server.k1s0-system.svc.cluster.local:8080/.well-known/jwks.json"
"#,
        &[("HEADGATE__DATABASE__PASSWORD", "hunter2")],
    )
    .unwrap();
    assert_eq!(quota.database.schema, "quota");
    assert_eq!(quota.database.max_open_conns.get(), 10);
    assert_eq!(quota.redis.key_prefix.as_str(), "quota:");
    assert!(quota.auth.authenticates());
    assert!(!format!("{quota:?}").contains("hunter2"));
}

#[test]
fn every_key_is_read() {
    let config = load(
        r#"
app:
  name: "ratelimit"
  version: 0.10
  environment: production
server:
  host: "0.0.0.0"
  port: 9090
  request_timeout_seconds: 5
  shutdown_timeout_seconds: 0
auth:
  mode: off
redis:
  url: "redis://:hunter2@redis.example:6379"
  pool_size: 20
  timeout_ms: 250
memory:
  capacity: 5000
ratelimit:
  fail_open: false
  default_limit: 7
  default_window_seconds: 3600
quota:
  queue_capacity: 100
  reconcile_interval_seconds: 60
observability:
  log:
    level: debug
    format: json
"#,
        &[],
    )
    .unwrap();
    assert_eq!(config.app.name, "ratelimit");
    // A number is read as text where the key is text.
    assert_eq!(config.app.version, "0.10");
    assert_eq!(config.app.environment, "production");
    assert_eq!(config.server.address().to_string(), "0.0.0.0:9090");
    assert_eq!(config.server.request_timeout().as_secs(), 5);
    assert_eq!(config.server.timeouts().drain.as_secs(), 0);
    assert_eq!(config.auth.mode, Some(AuthMode::Off));
    assert!(config.redis.target().unwrap().is_some());
    assert_eq!((config.redis.pool_size.get(), config.redis.timeout_ms.get()), (20, 250));
    assert_eq!(config.memory.capacity.get(), 5000);
    assert!(!config.ratelimit.fail_open);
    assert_eq!(config.ratelimit.default_limit.get(), 7);
    assert_eq!(config.ratelimit.default_window_seconds.get(), 3600);
    assert_eq!(config.quota.queue_capacity.get(), 100);
    assert_eq!(config.quota.reconcile_interval().as_secs(), 60);
    assert_eq!(config.observability.log.level, LogLevel::Debug);
    assert_eq!(config.observability.log.format, LogFormat::Json);
    assert!(!format!("{config:?}").contains("hunter2"));
}

#[test]
fn variables_override_the_file() {
    let config = load(
        "server:\n  port: 9000\nredis:\n  url: redis://a\n",
        &[
            ("HEADGATE__SERVER__PORT", "9001"),
            ("HEADGATE__RATELIMIT__FAIL_OPEN", "false"),
            ("HEADGATE__OBSERVABILITY__LOG__FORMAT", "json"),
            ("HEADGATE_SERVER", "http://elsewhere"),
            ("PATH", "/bin"),
        ],
    )
    .unwrap();
    assert_eq!(config.server.port.get(), 9001);
    assert!(!config.ratelimit.fail_open);
    assert_eq!(config.observability.log.format, LogFormat::Json);
}

#[test]
fn a_list_in_a_variable_has_commas() {
    let config = load("", &[("HEADGATE__REDIS__URLS", "redis://a:1, redis://b:2")]).unwrap();
    let urls = config.redis.urls.unwrap();
    let urls: Vec<&str> = urls.iter().map(Secret::expose).collect();
    assert_eq!(urls, ["redis://a:1", "redis://b:2"]);
}

#[test]
fn all_problems_are_reported_at_once() {
    let reported = problems(
        "server:\n  prot: 80\n  port: 70000\n  host: example.com\nratelimit:\n  fail_open: maybe\n  default_limit: 0\n",
        &[
            ("HEADGATE__RATELIMIT__DEFAULT_WINDOW_SECONDS", "1m"),
            ("HEADGATE__OBSERVABILITY__LOG__LEVEL", "loud"),
        ],
    );
    let expected = r#"invalid configuration:
  observability.log.level (HEADGATE__OBSERVABILITY__LOG__LEVEL): expected trace or debug or info or warn or error, got "loud"
  ratelimit.default_limit (config.yaml:7): expected a whole number from 1 to 4294967295, got "0"
  ratelimit.default_window_seconds (HEADGATE__RATELIMIT__DEFAULT_WINDOW_SECONDS): expected a whole number from 1 to 31622400, got "1m"
  ratelimit.fail_open (config.yaml:6): expected true or false, got "maybe"
  server.host (config.yaml:4): expected an IP address such as 127.0.0.1, 0.0.0.0 or ::1, got "example.com"
  server.port (config.yaml:3): expected a whole number from 0 to 65535, got "70000"
  server.prot (config.yaml:2): unknown key; known here: host, port, grpc_port, reuse_port, unix_socket, grpc_unix_socket, unix_socket_mode, tls, grpc_tls, data_dir, workers, trusted_proxies, forwarded_by, ipv6_prefix_length, request_timeout_seconds, idle_timeout_seconds, max_connections, max_buffered_bytes, shutdown_delay_seconds, shutdown_grace_seconds, shutdown_timeout_seconds, watch_config"#;
    assert_eq!(reported, expected);
}

#[test]
fn each_problem_names_its_key_and_line() {
    let cases = [
        (
            "databse:\n  host: db\n",
            "databse (config.yaml:1): unknown key; known here: app, server, auth, database, audit, redis, memory, ratelimit, rate_limiter, envoy, quota, kafka, webhooks, console, observability",
        ),
        (
            "database:\n  conn_max_lifetime: 5 minutes\n",
            "database.conn_max_lifetime (config.yaml:2): expected a duration of up to a day such as 500ms, 30s, 5m or 1h, got \"5 minutes\"",
        ),
        (
            "database:\n  url: mysql://user:hunter2@db/x\n",
            "database.url (config.yaml:2): a database URL must begin with postgresql://, postgres:// or sqlite://",
        ),
        (
            "database:\n  url: sqlite://a\n  host: db\n",
            "database.url (config.yaml:2): set database.url, or database.host and the keys beside it, not both",
        ),
        (
            "database:\n  host: db\n  ssl_mode: perhaps\n",
            "database.ssl_mode (config.yaml:3): ssl_mode must be one of: disable, allow, prefer, require, verify-ca, verify-full",
        ),
        (
            "observability:\n  trace:\n    sample_rate: 2\n",
            "observability.trace.sample_rate (config.yaml:3): expected a number from 0 to 1, got \"2\"",
        ),
        (
            "observability:\n  trace:\n    endpoint: collector:4317\n",
            "observability.trace.endpoint (config.yaml:3): expected an http:// or https:// URL without user or password, such as http://collector.example:4317",
        ),
        (
            "observability:\n  trace:\n    endpoint: http://user:secret@collector\n",
            "observability.trace.endpoint (config.yaml:3): expected an http:// or https:// URL without user or password, such as http://collector.example:4317",
        ),
        (
            "observability:\n  metrics:\n    path: metrics\n",
            "observability.metrics.path (config.yaml:3): expected a path such as /metrics: / and then letters, digits, -, ., _, ~ or /; got \"metrics\"",
        ),
        (
            "observability:\n  metrics:\n    path: /{anything}\n",
            "observability.metrics.path (config.yaml:3): expected a path such as /metrics: / and then letters, digits, -, ., _, ~ or /; got \"/{anything}\"",
        ),
        (
            "observability:\n  metrics:\n    path: /healthz\n",
            "observability.metrics.path (config.yaml:3): what begins with /healthz is not for metrics",
        ),
        (
            "server:\n  trusted_proxies: [10.0.0.0/33]\n",
            "server.trusted_proxies[0] (config.yaml:2): \"33\" is not a prefix length: write a number from 0 to 32",
        ),
        (
            "server:\n  data_dir: ''\n",
            "server.data_dir (config.yaml:2): expected a path; leave the key out for its default",
        ),
        (
            "server:\n  unix_socket: ''\n",
            "server.unix_socket (config.yaml:2): expected a path; leave the key out for its default",
        ),
        (
            "server:\n  forwarded_by: via\n",
            "server.forwarded_by (config.yaml:2): expected first_present or x_forwarded_for or forwarded or x_real_ip, got \"via\"",
        ),
        ("server: 80\n", "server (config.yaml:1): expected a section, got a text"),
        ("server: [a]\n", "server (config.yaml:1): expected a section, got a list"),
        ("app:\n  name: [a]\n", "app.name (config.yaml:2): expected a string, got a list"),
        ("app:\n  name: {a: b}\n", "app.name (config.yaml:2): expected a string, got a section"),
        ("auth:\n  mode: jwt\n", "auth.mode (config.yaml:2): expected off, got \"jwt\""),
        ("auth:\n  mode: []\n", "auth.mode (config.yaml:2): expected off"),
        (
            "ratelimit:\n  fail_open: {}\n",
            "ratelimit.fail_open (config.yaml:2): expected a boolean, got a section",
        ),
        (
            "server:\n  host: 0.0.0.0\n",
            "server.host (config.yaml:2): 0.0.0.0 can be reached from other machines, and nothing authenticates them: set auth.jwks_url or auth.tokens, listen on 127.0.0.1, or set auth.mode: off to serve without authentication",
        ),
    ];
    refused(&cases);
}

#[test]
fn each_problem_of_a_store_names_its_key_and_line() {
    refused(&[
        (
            "memory:\n  capacity: 0\n",
            "memory.capacity (config.yaml:2): expected a whole number from 1 to 1000000000, got \"0\"",
        ),
        (
            "memory:\n  capacity: -1\n",
            "memory.capacity (config.yaml:2): expected a whole number from 1 to 1000000000, got \"-1\"",
        ),
        (
            "server:\n  ipv6_prefix_length: 32\n",
            "server.ipv6_prefix_length (config.yaml:2): expected a whole number from 48 to 64, got \"32\"",
        ),
        (
            "memory:\n  overflow_bytes: 4095\n",
            "memory.overflow_bytes (config.yaml:2): expected a whole number from 4096 to 1073741824, got \"4095\"",
        ),
        (
            "redis:\n  timeout_ms: 0\n",
            "redis.timeout_ms (config.yaml:2): expected a whole number from 1 to 60000, got \"0\"",
        ),
        ("redis:\n  urls: []\n", "redis.urls (config.yaml:2): a cluster needs at least one URL"),
        (
            "redis:\n  urls:\n    - [a]\n",
            "redis.urls[0] (config.yaml:3): expected a string, got a list",
        ),
        (
            "redis:\n  url: localhost:6379\n",
            "redis.url (config.yaml:2): expected a URL such as redis://127.0.0.1:6379",
        ),
        (
            "redis:\n  url: redis://a\n  urls: [redis://b]\n",
            "redis.urls (config.yaml:3): set redis.url for one server or redis.urls for a cluster, not both",
        ),
    ]);
}

#[test]
fn each_problem_of_quotas_names_its_key_and_line() {
    refused(&[
        (
            "redis:\n  key_prefix: '{a}:'\n",
            "redis.key_prefix (config.yaml:2): expected 1 to 64 visible ASCII characters other than braces, such as quota:, got \"{a}:\"",
        ),
        (
            "quota:\n  queue_capacity: 0\n",
            "quota.queue_capacity (config.yaml:2): expected a whole number from 1 to 1000000, got \"0\"",
        ),
        (
            "quota:\n  reconcile_interval_seconds: often\n",
            "quota.reconcile_interval_seconds (config.yaml:2): expected a whole number from 1 to 3600, got \"often\"",
        ),
    ]);
}

fn refused(cases: &[(&str, &str)]) {
    for (yaml, expected) in cases {
        let reported = problems(yaml, &[]);
        assert_eq!(reported, format!("invalid configuration:\n  {expected}"), "{yaml}");
    }
}

#[test]
fn a_secret_can_come_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("redis-url");
    fs::write(&secret, "redis://:hunter2@secret.example\n").unwrap();
    let path = secret.to_str().unwrap();
    let url = |config: Config| config.redis.url.unwrap().expose().to_owned();

    let by_file = load(&format!("redis:\n  url_file: {path}\n"), &[]).unwrap();
    assert_eq!(url(by_file), "redis://:hunter2@secret.example");

    let by_variable = load("redis:\n  url: redis://b\n", &[("HEADGATE__REDIS__URL_FILE", path)]);
    assert_eq!(url(by_variable.unwrap()), "redis://:hunter2@secret.example");

    let overridden =
        load(&format!("redis:\n  url_file: {path}\n"), &[("HEADGATE__REDIS__URL", "redis://c")]);
    assert_eq!(url(overridden.unwrap()), "redis://c");
}

#[test]
fn a_secret_in_the_wrong_place_is_not_repeated() {
    for yaml in [
        "redis: redis://:hunter2@host\n",
        "redis:\n  url: nonsense://:hunter2@host\n",
        "redis:\n  url: {hunter2: x}\n",
    ] {
        let reported = problems(yaml, &[]);
        assert!(!reported.contains("hunter2"), "{reported}");
    }
}

#[test]
fn a_public_address_is_accepted_with_authentication() {
    let token = "[{name: ci, role: sys_operator, token: 0123456789abcdef}]";
    for (key, value) in
        [("HEADGATE__AUTH__JWKS_URL", "http://issuer/certs"), ("HEADGATE__AUTH__TOKENS", token)]
    {
        let config = load("server:\n  host: 0.0.0.0\n", &[(key, value)]).unwrap();
        assert!(config.auth.authenticates(), "{key}");
    }
    assert!(load("server:\n  host: 0.0.0.0\nauth:\n  tokens: []\n", &[]).is_err());
}

#[test]
fn a_public_address_without_authentication_needs_auth_mode_off() {
    let everywhere = [("HEADGATE__SERVER__HOST", "::"), ("HEADGATE__AUTH__MODE", "off")];
    assert!(load("", &everywhere[..1]).is_err());
    assert_eq!(load("", &everywhere).unwrap().server.address().to_string(), "[::]:8080");
    for host in ["localhost", "127.0.0.2", "::1"] {
        assert!(load("", &[("HEADGATE__SERVER__HOST", host)]).is_ok(), "{host}");
    }
}

#[test]
fn the_metrics_path_must_not_collide_with_routes() {
    let path = |path: &str| MetricsPath::try_from(path.to_owned());
    for taken in crate::rest::openapi::document(None).paths.paths.into_keys() {
        assert_eq!(path(&taken).is_ok(), taken == "/metrics", "{taken}");
    }
    for free in ["/metrics", "/internal/metrics", "/apis"] {
        assert_eq!(path(free).unwrap().as_str(), free);
    }
    for none in ["", "/", "metrics", "/a b", "/a?b", "/{a}", "/*a", "/é"] {
        assert!(path(none).is_err(), "{none}");
    }
}
