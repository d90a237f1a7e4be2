use std::fs;

use super::*;
use crate::config::SCHEMA;

/// Another value than the default for every key. It need not make sense as a whole.
const OTHER: &str = "
app: {name: a, version: '9', environment: e}
server:
  host: '::1'
  port: 1
  grpc_port: 2
  reuse_port: true
  unix_socket: a
  grpc_unix_socket: b
  unix_socket_mode: '0600'
  tls:
    certificates: [{cert_file: c, key_file: k}]
    client_ca_file: ca
    client_certificates: optional
    min_version: '1.3'
  grpc_tls:
    certificates: [{cert_file: c, key_file: k}]
    client_ca_file: ca
    client_certificates: optional
    min_version: '1.3'
  data_dir: elsewhere
  workers: 3
  trusted_proxies: [10.0.0.1]
  forwarded_by: forwarded
  ipv6_prefix_length: 48
  request_timeout_seconds: 4
  idle_timeout_seconds: 5
  max_connections: 6
  max_buffered_bytes: 2000000
  shutdown_delay_seconds: 7
  shutdown_grace_seconds: 8
  shutdown_timeout_seconds: 9
  watch_config: true
auth:
  mode: off
  jwks_url: https://issuer.example/keys
  issuer: i
  audience: a
  ca_file: c
  jwks_cache_seconds: 1
  leeway_seconds: 1
  tokens: [{name: ci, role: sys_admin, token: ci-secret-0123456789}]
  client_certificates: [{name: ops.example, role: sys_admin}]
database:
  url: sqlite://other
  host: h
  port: 1
  name: n
  user: u
  password: p
  ssl_mode: require
  ca_file: c
  cert_file: c
  key_file: k
  schema: s
  max_open_conns: 1
  max_idle_conns: 1
  conn_max_lifetime: 1s
  connect_timeout_seconds: 1
audit: {retention_days: 1}
redis:
  url: redis://h
  urls: [redis://h]
  password: p
  ca: c
  cert: c
  key: k
  pool_size: 1
  timeout_ms: 1
  max_in_flight: 1
  max_new_subjects_per_second: 1
  key_prefix: 'p:'
  connect_timeout_seconds: 1
memory: {capacity: 1, overflow_bytes: 4096}
ratelimit:
  fail_open: false
  default_limit: 1
  default_window_seconds: 1
  replicas: 2
  refresh_interval_seconds: 1
  max_rules: 1
  lease: 5%/100ms
rate_limiter:
  algorithm: FIXED_WINDOW
  lease: 10%/200ms
  fail_mode: closed
  token_bucket: {capacity: 1, refill_rate: 1}
  sliding_window: {max_requests: 1, window_size: 1}
  sliding_window_counter: {max_requests: 1, window_size: 1}
  fixed_window: {max_requests: 1, window_size: 1}
  leaky_bucket: {capacity: 1, leak_rate: 1}
  overrides: [{prefix: a, token_bucket: {capacity: 2}}]
envoy:
  enabled: true
  rules: true
  auth: token
  config_dir: d
  config_file: f
  reload_interval_seconds: 1
  xds:
    url: http://h:1
    node_id: n
    ca_file: c
    cert_file: c
    key_file: k
    server_name: s
    connect_timeout_seconds: 1
    initial_wait_seconds: 1
    max_message_bytes: 65536
  denied_consumes: all
  shadow_mode: true
  quota_mode: true
  fail_mode: open
  response_headers: all
  dynamic_metadata: true
quota:
  max_policies: 1
  queue_capacity: 1
  reconcile_interval_seconds: 1
  reset_schedule: {daily: '1 0 * * *', monthly: '1 0 1 * *'}
  retention: {periods_days: 1, request_ids_days: 1, events_days: 1}
kafka:
  brokers: ['h:1']
  security_protocol: SASL_SSL
  topic_exceeded: t
  topic_threshold: t
  sasl_mechanism: PLAIN
  username: u
  password: p
  ca_file: c
  cert_file: c
  key_file: k
  send_timeout_seconds: 1
webhooks: [{url: 'https://h/', secret: 0123456789abcdef}]
console:
  enabled: false
  session_ttl_seconds: 1
  idle_timeout_seconds: 1
  public_url: https://h
  other_urls: [https://h]
  oidc: {client_id: c, authorization_endpoint: https://h, token_endpoint: https://h, scope: s}
observability:
  log: {level: debug, format: json, access_sample: 0.5}
  trace:
    enabled: true
    endpoint: 'http://h:1'
    ca_file: c
    cert_file: c
    key_file: k
    sample_rate: 0.5
  metrics:
    enabled: false
    path: /m
    otlp:
      enabled: true
      endpoint: https://h:1
      ca_file: c
      cert_file: c
      key_file: k
      interval_seconds: 1
";

#[test]
fn every_key_is_taken_from_the_configuration_that_its_effect_says() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("other.yaml");
    fs::write(&file, OTHER).unwrap();
    let other: Config = SCHEMA.load(Some(&file), [], |_| Vec::new()).unwrap();
    let default = Config::default();
    let mixed = default.with_live_keys_of(&other).printed();
    let (default, other) = (default.printed(), other.printed());
    for key in default.keys() {
        assert_ne!(default.get(&key), other.get(&key), "give {key} another value in this test");
        let expected = match Effect::of(&key) {
            Effect::Live => &other,
            Effect::Restart => &default,
        };
        assert_eq!(mixed.get(&key), expected.get(&key), "{key}");
    }
}
