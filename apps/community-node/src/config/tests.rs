use super::*;

fn load(variables: &[(&str, &str)]) -> Result<Config, VariableError> {
    Config::load(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
}

#[test]
fn without_variables_it_needs_nothing_but_this_machine() {
    let config = load(&[("PATH", "/bin"), ("CN_BACKEND", "")]).unwrap();
    assert_eq!(config.listen.to_string(), "127.0.0.1:8090");
    assert_eq!(config.backend, Backend::InMemory);
    assert_eq!(config.database_url.reveal(), DEFAULT_DATABASE);
    assert_eq!((config.iroh_bind, config.poll), (None, Duration::from_secs(30)));
    assert!(config.admin_password.is_none());
}

#[test]
fn an_invalid_variable_is_reported_with_what_is_expected() {
    let cases = [
        ("CN_LISTEN", "8090", "expected an address and a port"),
        ("CN_DATABASE_URL", "mysql://x", "must begin with postgresql://"),
        ("CN_TRUSTED_PROXIES", "10.0.0.0/8, x", "\"x\" is not an IP address"),
        (
            "CN_FORWARDED_BY",
            "X-Real-IP",
            "expected first_present, x_forwarded_for, forwarded or x_real_ip",
        ),
        ("CN_IPV6_PREFIX", "128", "expected a number of bits, 48 to 64"),
        ("CN_BACKEND", "memcached", "expected inmem or redis"),
        ("CN_REDIS_URL", "redis://localhost", "expected redis, since CN_REDIS_URL is set"),
        ("CN_REDIS_TIMEOUT_MS", "0", "expected milliseconds, 1 to 60000"),
        ("CN_ADMIN_PASSWORD", "short", "expected at least 16 bytes"),
        ("CN_ADMIN_PASSWORD_FILE", "/nowhere/at/all", "No such file"),
        ("CN_IROH_BIND", "x", "expected an address and a port"),
        ("CN_IROH_SECRET", "short", "expected 64 hexadecimal digits"),
        ("CN_GOSSIP_PEERS", "192.0.2.1:1", "\"192.0.2.1:1\" names no peer: expected its id"),
        ("CN_MAX_QUOTAS", "0", "expected a number of quotas, 1 to 10000000"),
        ("CN_CONFIG_POLL_SECONDS", "0", "expected seconds, 1 to 3600"),
        ("CN_LISTNE", "x", "unknown variable; known variables: CN_LISTEN"),
    ];
    for (variable, value, expected) in cases {
        let problem = load(&[(variable, value)]).expect_err(variable).to_string();
        assert!(problem.contains(expected), "{variable}={value}: {problem}");
        assert!(value != "short" || !problem.contains(value));
    }
    let problem = load(&[("CN_BACKEND", "redis")]).unwrap_err().to_string();
    assert!(problem.starts_with("CN_REDIS_URL: is missing"), "{problem}");
}

#[test]
fn duplicate_topics_are_dropped() {
    let config = load(&[("CN_GOSSIP_TOPICS", " rust, wasm,rust ,")]).unwrap();
    assert_eq!(config.topics, ["rust", "wasm"]);
    assert!(config.peers.is_empty());
}

#[test]
fn secrets_are_not_shown() {
    let config = load(&[
        ("CN_DATABASE_URL", "postgresql://cn:hunter2hunter2@localhost/cn"),
        ("CN_ADMIN_PASSWORD", "hunter2hunter2hunter2"),
        ("CN_BACKEND", "redis"),
        ("CN_REDIS_URL", "redis://:hunter2@localhost"),
    ])
    .unwrap();
    assert!(!format!("{config:?}").contains("hunter2"), "{config:?}");
}
