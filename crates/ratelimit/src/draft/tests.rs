use super::*;

fn draft() -> Draft {
    Draft {
        scope: "user".to_owned().into(),
        identifier_pattern: "*".to_owned().into(),
        limit: 100.into(),
        window_seconds: 60.into(),
        ..Draft::default()
    }
}

fn messages(draft: Draft) -> Vec<String> {
    draft.validate(None).unwrap_err().into_iter().map(|error| error.message).collect()
}

#[test]
fn scope_pattern_limit_and_window_are_sufficient() {
    let spec = draft().validate(None).unwrap();
    assert_eq!(spec.key(), "user:*");
    assert_eq!(spec.display_name(), "user:*");
    assert_eq!((spec.limit, spec.window_seconds, spec.enabled), (100, 60, true));
    assert_eq!(spec.algorithm, Algorithm::TokenBucket);
    assert_eq!(Draft::from(&spec).validate(None), Ok(spec));
}

#[test]
fn all_errors_are_reported_at_once() {
    let nothing = messages(Draft::default());
    let required = ["scope", "identifier_pattern", "limit", "window_seconds"];
    assert_eq!(nothing, required.map(|field| format!("{field} is required")));

    let wrong = Draft {
        scope: "tenant".to_owned().into(),
        identifier_pattern: Input::WrongType("a list"),
        limit: 0.into(),
        window_seconds: (-1).into(),
        algorithm: "calendar".to_owned().into(),
        burst: 0.into(),
        fail_mode: "maybe".to_owned().into(),
        name: String::new().into(),
        enabled: Input::WrongType("a string"),
    };
    let expected = [
        "scope must be one of: service, user, endpoint",
        "identifier_pattern must be a string, got a list",
        "limit must be greater than 0",
        "window_seconds must be greater than 0",
        "name must have 1 to 255 characters",
        "algorithm must be one of: token_bucket, sliding_window, sliding_window_counter, fixed_window, leaky_bucket",
        "burst must be greater than 0",
        "fail_mode must be one of: capped, open, closed, local",
        "enabled must be a boolean, got a string",
    ];
    assert_eq!(messages(wrong), expected);
}

#[test]
fn rejects_invalid_combinations_of_numbers() {
    let of = |limit: i64, window: i64, algorithm: &str| Draft {
        limit: limit.into(),
        window_seconds: window.into(),
        algorithm: algorithm.to_owned().into(),
        ..draft()
    };
    assert_eq!(messages(of(1 << 40, 60, "token_bucket")), ["limit must be at most 4294967295"]);
    assert_eq!(
        messages(of(1, 40_000_000, "token_bucket")),
        ["window_seconds must be at most 31622400"]
    );
    assert_eq!(
        messages(of(100_001, 60, "sliding_window")),
        ["limit of sliding_window must be at most 100000, got 100001"]
    );
    let bursting = Draft { burst: 5.into(), ..of(1, 60, "fixed_window") };
    let expected = "fixed_window has no burst: only token_bucket and leaky_bucket do";
    assert_eq!(messages(bursting), [expected]);
}

#[test]
fn missing_fields_are_kept_and_null_fields_removed() {
    let full = Draft {
        name: "all".to_owned().into(),
        burst: 5.into(),
        fail_mode: "closed".to_owned().into(),
        enabled: false.into(),
        ..draft()
    };
    let current = full.validate(None).unwrap();
    let kept = draft().validate(Some(&current)).unwrap();
    assert_eq!(kept, current);

    let dropping = Draft { name: Input::Null, burst: Input::Null, ..draft() };
    let dropped = dropping.validate(Some(&current)).unwrap();
    assert_eq!((dropped.name, dropped.burst), (None, None));
    assert_eq!(dropped.fail_mode, Some(FailMode::Closed));
}
