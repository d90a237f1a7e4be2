use std::time::Duration;

use super::*;

fn load(variables: &[(&str, &str)]) -> Result<Config, VariableError> {
    Config::load(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
}

fn problem(variables: &[(&str, &str)]) -> String {
    load(variables).expect_err("an invalid variable").to_string()
}

#[test]
fn without_variables_it_needs_nothing_but_this_machine() {
    let config = load(&[("PATH", "/bin"), ("POSTS_STORE", "")]).unwrap();
    assert_eq!(config.listen.to_string(), "127.0.0.1:3000");
    assert_eq!(config.store, StoreKind::Memory);
    assert_eq!(config.database, Database::Sqlite("data/posts.db".into()));
    assert_eq!(config.proxies, TrustedProxies::default());
    assert!(config.secret.is_none() && !config.create_tables);
}

#[test]
fn dynamodb_tables_have_the_default_prefix() {
    let config = load(&[("POSTS_STORE", "dynamodb")]).unwrap();
    assert_eq!((config.store, config.database), (StoreKind::DynamoDb, Database::DynamoDb));
    assert_eq!(config.tables.rate_limits, "aruaruarena-rate-limits");
    assert_eq!(config.tables.posts, "aruaruarena-posts");
    let dynamodb = format!("{:?}", config.dynamodb);
    assert!(dynamodb.contains("ap-northeast-1") && dynamodb.contains("aruaruarena-rate-limits"));
    assert!(dynamodb.contains(&format!("{:?}", Duration::from_millis(500))), "{dynamodb}");
}

#[test]
fn posts_and_cooldowns_can_be_in_different_places() {
    let config = load(&[("POSTS_STORE", "dynamodb"), ("POSTS_DATABASE", "posts.db")]).unwrap();
    assert_eq!(config.database, Database::Sqlite("posts.db".into()));
    let config = load(&[("POSTS_DATABASE", "dynamodb")]).unwrap();
    assert_eq!((config.store, config.database), (StoreKind::Memory, Database::DynamoDb));
}

#[test]
fn an_invalid_variable_is_reported_with_what_is_expected() {
    let cases = [
        ("POSTS_LISTEN", "3000", "expected an address and a port, such as 127.0.0.1:3000"),
        ("POSTS_STORE", "redis", "expected memory or dynamodb"),
        ("POSTS_TRUSTED_PROXIES", "10.0.0.0/8, x", "\"x\" is not an IP address"),
        (
            "POSTS_FORWARDED_BY",
            "X-Real-IP",
            "expected first_present, x_forwarded_for, forwarded or x_real_ip",
        ),
        ("POSTS_IPV6_PREFIX", "32", "expected a number of bits, 48 to 64"),
        ("POSTS_TLS_KEY_FILE", "a.key", "1 keys for 0 certificates"),
        ("POSTS_HMAC_SECRET", "short", "expected at least 16 bytes"),
        ("POSTS_HMAC_SECRET_FILE", "/nowhere/at/all", "No such file"),
        ("POSTS_CREATE_TABLES", "yes", "expected true or false"),
        (
            "POSTS_STOER",
            "memory",
            "unknown variable; known variables: POSTS_LISTEN, POSTS_TLS_CERT_FILE",
        ),
        ("DYNAMODB_ENDPOINT", "localhost:8000", "invalid endpoint: expected http://"),
        ("DYNAMODB_CA_FILE", "/no/such/file", "/no/such/file: No such file"),
        ("DYNAMODB_TABLE_PREFIX", "a/b", "invalid table name"),
        ("DYNAMODB_TIMEOUT_MS", "0", "expected milliseconds, 1 to 60000"),
        ("AWS_REGION", "the moon", "invalid region"),
        ("AWS_ACCESS_KEY_ID", "AKID", "is missing; it belongs to AWS_ACCESS_KEY_ID"),
    ];
    for (variable, value, expected) in cases {
        let problem = problem(&[(variable, value)]);
        assert!(problem.contains(expected), "{variable}={value}: {problem}");
        assert!(problem.starts_with(variable) || value == "AKID", "{problem}");
    }
}

#[test]
fn the_secret_is_not_shown() {
    let config = load(&[("POSTS_HMAC_SECRET", "0123456789abcdef")]).unwrap();
    assert!(config.secret.is_some() && !format!("{config:?}").contains("0123456789abcdef"));
}
