use headgate::{Extra, FailMode, LeasePolicy};
use headgate_ratelimit::KeyedAlgorithm;

use crate::config::Config;

const VARIABLE: &str = "HEADGATE__RATE_LIMITER__";

/// Loads these keys of the section; an error is the text that an operator reads.
fn load(keys: &[(&str, &str)]) -> Result<Config, String> {
    let variables = keys.iter().map(|(key, value)| {
        let key = key.to_uppercase().replace('.', "__");
        (format!("{VARIABLE}{key}"), (*value).to_owned())
    });
    Config::load(None, variables).map_err(|error| error.to_string().replace(VARIABLE, ""))
}

#[test]
fn the_defaults_are_those_of_the_document() {
    let limits = load(&[]).unwrap().rate_limiter.limits(LeasePolicy::OFF).unwrap();
    assert_eq!(limits.fail_mode(), FailMode::Capped);
    for algorithm in KeyedAlgorithm::ALL {
        let limit = limits.of(algorithm, "user:1");
        assert_eq!(limit.limit().algorithm(), algorithm.engine());
        assert_eq!(limit.limit().capacity(), 100);
        let is_bucket = algorithm.name().ends_with("BUCKET");
        assert_eq!(limit.window_seconds(), if is_bucket { 10 } else { 60 });
    }
}

#[test]
fn an_override_keeps_omitted_values() {
    let config = load(&[
        ("token_bucket.capacity", "20"),
        ("token_bucket.refill_rate", "4"),
        ("fixed_window.window_size", "5m"),
        (
            "overrides",
            "[{prefix: 'a:', token_bucket: {refill_rate: 2}, fixed_window: {max_requests: 7}}]",
        ),
    ]);
    let limits = config.unwrap().rate_limiter.limits(LeasePolicy::OFF).unwrap();
    let limit_of = |algorithm, key| {
        let limit = limits.of(algorithm, key);
        (limit.limit().capacity(), limit.window_seconds())
    };
    assert_eq!(limit_of(KeyedAlgorithm::TokenBucket, "b:1"), (20, 5));
    assert_eq!(limit_of(KeyedAlgorithm::TokenBucket, "a:1"), (20, 10));
    assert_eq!(limit_of(KeyedAlgorithm::FixedWindow, "a:1"), (7, 300));
    assert_eq!(limit_of(KeyedAlgorithm::LeakyBucket, "a:1"), (100, 10));
}

#[test]
fn a_lease_is_the_sections_or_the_default_unless_an_override_sets_one() {
    let overrides = "[{prefix: 'a:', lease: 20%/100ms}, {prefix: 'b:', lease: off}]";
    let units = |keys: &[(&str, &str)], key: &str| {
        let limits = load(keys).unwrap().rate_limiter.limits("5%/50ms".parse().unwrap()).unwrap();
        limits.of(KeyedAlgorithm::FixedWindow, key).extra().map(Extra::units)
    };
    assert_eq!(units(&[], "c:1"), Some(5), "the default");
    let keys = [("lease", "10%/200ms"), ("overrides", overrides)];
    assert_eq!(units(&keys, "a:1"), Some(20));
    assert_eq!(units(&keys, "b:1"), None);
    assert_eq!(units(&keys, "c:1"), Some(10));
    assert_eq!(units(&[("lease", "off")], "c:1"), None);
}

#[test]
fn each_problem_names_its_key_and_line() {
    let cases = [
        (("lease", "60%/200ms"), "lease (LEASE): share_percent must be 1 to 50, got \"60%/200ms\""),
        (
            ("lease", "10%"),
            "lease (LEASE): expected a share and a hold such as 10%/200ms, or off, got \"10%\"",
        ),
        (
            ("algorithm", "GCRA"),
            "algorithm (ALGORITHM): expected one of TOKEN_BUCKET, SLIDING_WINDOW, \
             SLIDING_WINDOW_COUNTER, FIXED_WINDOW, LEAKY_BUCKET, got \"GCRA\"",
        ),
        (
            ("fail_mode", "maybe"),
            "fail_mode (FAIL_MODE): expected capped or open or closed or local, got \"maybe\"",
        ),
        (
            ("token_bucket.capacity", "0"),
            "token_bucket.capacity (TOKEN_BUCKET__CAPACITY): expected a whole number from 1 to \
             4294967295, got \"0\"",
        ),
        (
            ("leaky_bucket.leak_rate", "-1"),
            "leaky_bucket.leak_rate (LEAKY_BUCKET__LEAK_RATE): expected a whole number from 1 to \
             4294967295, got \"-1\"",
        ),
        (
            ("token_bucket.capacity", "4000000000"),
            "token_bucket.capacity (TOKEN_BUCKET__CAPACITY): a bucket of this size takes more than \
             31622400 seconds to fill or to drain: lower it, or raise the rate",
        ),
        (
            ("sliding_window.max_requests", "100001"),
            "sliding_window.max_requests (SLIDING_WINDOW__MAX_REQUESTS): expected at most 100000, \
             got 100001: each is remembered",
        ),
        (
            ("fixed_window.window_size", "1d"),
            "fixed_window.window_size (FIXED_WINDOW__WINDOW_SIZE): expected a window of up to \
             31622400 seconds such as 60, 60s, 1m or 1h, got \"1d\"",
        ),
        (
            ("token_bucket.rate", "1"),
            "token_bucket.rate (TOKEN_BUCKET__RATE): unknown key; known here: capacity, refill_rate",
        ),
        (
            ("overrides", "api_key:"),
            "overrides (OVERRIDES): expected a list such as \
             [{prefix: 'api_key:', token_bucket: {capacity: 1000, refill_rate: 100}}]",
        ),
    ];
    for (key, expected) in cases {
        let reported = load(&[key]).unwrap_err();
        let expected = format!("invalid configuration:\n  rate_limiter.{expected}");
        assert_eq!(reported, expected);
    }
}

#[test]
fn an_invalid_override_is_rejected() {
    let cases = [
        ("[{prefix: '', token_bucket: {}}]", "[0].prefix", "expected a text that is not empty"),
        (
            "[{prefix: '{a}', token_bucket: {}}]",
            "[0].prefix",
            "no key begins with this: key must not",
        ),
        ("[{prefix: 'a:'}]", "[0].prefix", "nothing is overridden: add a section"),
        (
            "[{prefix: a, fixed_window: {}}, {prefix: a, token_bucket: {}}]",
            "[1].prefix",
            "another override has the same prefix",
        ),
        (
            "[{prefix: a, sliding_window: {max_requests: 200000}}]",
            "[0].sliding_window.max_requests",
            "expected at most 100000",
        ),
        ("[{prefix: a, token_bucket: {rate: 1}}]", "[0].token_bucket.rate", "unknown key"),
        ("[{token_bucket: {}}]", "[0]", "missing key \"prefix\""),
    ];
    for (overrides, key, expected) in cases {
        let reported = load(&[("overrides", overrides)]).unwrap_err();
        assert!(reported.contains(&format!("rate_limiter.overrides{key} (")), "{reported}");
        assert!(reported.contains(expected), "{reported}");
    }
}

#[test]
fn every_value_in_effect_is_printed() {
    let overrides = "[{prefix: 'api_key:', token_bucket: {capacity: 1000}}]";
    let config = load(&[("overrides", overrides), ("sliding_window.window_size", "1h")]).unwrap();
    let shown = serde_json::to_value(config.printed()).unwrap();
    let section = &shown["rate_limiter"];
    assert_eq!(section["algorithm"], "TOKEN_BUCKET");
    assert_eq!(section["fail_mode"], "capped");
    assert_eq!(section["sliding_window"]["window_size"], 3600);
    assert_eq!(section["overrides"][0]["prefix"], "api_key:");
    assert_eq!(section["overrides"][0]["token_bucket"]["capacity"], 1000);
}
